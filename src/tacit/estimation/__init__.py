"""Post-processing of releases: what they say about items and latent factors."""
