"""One object of every kind that holds work, as people write it: two GPU pods, waiting."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

NAMESPACE = "default"


def template(gpus: int = 1, **spec: Any) -> Json:
    amounts = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    container = {
        "name": "main",
        "image": "work",
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
    }
    # No grace: what is stopped is gone at once.
    pod = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"labels": {"app": "work"}}, "spec": pod}


def node_affinity(key: str, *values: str, operator: str = "In") -> Json:
    """An affinity that requires nodes whose label ``key`` is one of ``values``."""
    expression = {"key": key, "operator": operator, **({"values": [*values]} if values else {})}
    rule = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}


def job_set(name: str, gpus: int = 1) -> Json:
    def part(role: str, pods: int, each: int) -> Json:
        spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
        spec["template"] = template(each, restartPolicy="Never")
        return {"name": role, "replicas": 1, "template": {"spec": spec}}

    spec = {"suspend": True, "replicatedJobs": [part("driver", 1, 0), part("workers", 2, gpus)]}
    return _object("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec)


def pytorch_job(name: str, gpus: int = 1, **more: Any) -> Json:
    replicas = {
        "Master": {"replicas": 1, "template": template(gpus)},
        "Worker": {"replicas": 1, "template": template(gpus)},
    }
    spec = {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": replicas, **more}
    return _object("kubeflow.org/v1", "PyTorchJob", name, spec)


def paddle_job(name: str, gpus: int = 1) -> Json:
    replicas = {
        "Master": {"replicas": 1, "template": template(gpus)},
        "Worker": {"replicas": 1, "template": template(gpus)},
    }
    spec = {"runPolicy": {"suspend": True}, "paddleReplicaSpecs": replicas}
    return _object("kubeflow.org/v1", "PaddleJob", name, spec)


def mpi_job(name: str, gpus: int = 1) -> Json:
    replicas = {
        "Launcher": {"replicas": 1, "template": template(0)},
        "Worker": {"replicas": 2, "template": template(gpus)},
    }
    spec = {"runPolicy": {"suspend": True}, "slotsPerWorker": 1, "mpiReplicaSpecs": replicas}
    return _object("kubeflow.org/v2beta1", "MPIJob", name, spec)


def train_job(name: str, gpus: int = 1) -> Json:
    amounts = {"nvidia.com/gpu": str(gpus)}
    trainer = {"numNodes": 2, "resourcesPerNode": {"requests": amounts, "limits": amounts}}
    spec = {"suspend": True, "runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}
    return _object("trainer.kubeflow.org/v1alpha1", "TrainJob", name, spec)


def ray_cluster(name: str, gpus: int = 1, *, most: int = 2, least: int = 2) -> Json:
    return _object(
        "ray.io/v1", "RayCluster", name, {"suspend": True, **_ray(gpus, most=most, least=least)}
    )


def ray_job(name: str, gpus: int = 1) -> Json:
    spec = {
        "suspend": True,
        "shutdownAfterJobFinishes": True,
        "entrypoint": "python train.py",
        "rayClusterSpec": _ray(gpus, most=2, least=2),
    }
    return _object("ray.io/v1", "RayJob", name, spec)


def leader_worker_set(name: str, gpus: int = 1) -> Json:
    own = {"size": 2, "workerTemplate": template(gpus)}
    return _waiting(
        "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, {"leaderWorkerTemplate": own}, "1"
    )


def deployment(name: str, gpus: int = 1) -> Json:
    spec = {"selector": {"matchLabels": {"app": "work"}}, "template": template(gpus)}
    return _waiting("apps/v1", "Deployment", name, spec, "2")


MANIFESTS = {
    "JobSet": job_set,
    "PyTorchJob": pytorch_job,
    "PaddleJob": paddle_job,
    "MPIJob": mpi_job,
    "TrainJob": train_job,
    "RayJob": ray_job,
    "RayCluster": ray_cluster,
    "LeaderWorkerSet": leader_worker_set,
    "Deployment": deployment,
}

SUCCEEDED: dict[str, Json] = {
    "JobSet": {"conditions": [{"type": "Completed", "status": "True"}]},
    "PyTorchJob": {"conditions": [{"type": "Succeeded", "status": "True"}]},
    "PaddleJob": {"conditions": [{"type": "Succeeded", "status": "True"}]},
    "MPIJob": {"conditions": [{"type": "Succeeded", "status": "True"}]},
    "TrainJob": {"conditions": [{"type": "Complete", "status": "True"}]},
    "RayJob": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"},
}
"""The status that each kind's operator writes at the end; inference and Ray clusters have none."""


def _ray(gpus: int, *, most: int, least: int) -> Json:
    workers = {
        "groupName": "workers",
        "replicas": most,
        "minReplicas": least,
        "maxReplicas": most,
        "template": template(gpus),
    }
    return {"headGroupSpec": {"template": template(0)}, "workerGroupSpecs": [workers]}


def _waiting(version: str, kind: str, name: str, spec: Json, replicas: str) -> Json:
    made = _object(version, kind, name, {"replicas": 0, **spec})
    made["metadata"]["annotations"] = {"weir.dev/replicas": replicas}
    return made


def _object(version: str, kind: str, name: str, spec: Json) -> Json:
    meta = {"name": name, "namespace": NAMESPACE, "labels": {"weir.dev/queue": "research"}}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}
