"""Reading pipelines: `pipeline.yaml`, and flows of stages in JSON."""


# Commands of the delivery pipeline.


# A delivery project on disk: drafts, data and session files in `.cowork/`, which agents, people and a run share.


# Working with a delivery project: what is there, where it goes on, what a restart removes and how that is undone.
