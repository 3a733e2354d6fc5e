"""The application: `App`, what is checked before a run starts or continues, settings, plug-ins, stores, webhooks."""
