"""A delivery project on disk: drafts, data and session files in `.cowork/`, which agents, people and a run share."""
