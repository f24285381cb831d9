"""SCIM 2.0 (RFC 7643, RFC 7644): the organisation's directory keeps people and groups here in step."""
