"""Reading pipelines: `pipeline.yaml`, and flows of stages in JSON."""
