"""What pages say of vendors of GPUs, out of the one table of them."""

from __future__ import annotations

from scheduling.cluster.vocabulary import vendors
from scheduling.models import GpuClass

TOOLS = ", ".join(vendors.tools())
"""Programs that show on a node what its driver sees."""
USUAL_RESOURCE = str(GpuClass._meta.get_field("resource_name").default)
USUAL_LABEL = vendors.product_labels()[0]
