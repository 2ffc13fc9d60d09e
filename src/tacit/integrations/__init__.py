"""Adapters to other libraries: a private fit behind the interface that people have already.

Each is a module of its own and needs its library only when it is imported:

- `tacit.integrations.sklearn`: an estimator with the manners of scikit-learn;
- `tacit.integrations.implicit`: the methods of the models of `implicit`;
- `tacit.integrations.lenskit`: a scorer for pipelines of LensKit;
- `tacit.integrations.opendp`: a fit as a measurement of OpenDP;
- `tacit.integrations.mlflow`: a model as a pyfunc of MLflow.

None of them keeps a row: what they hold after a fit is the published model, and a user's own
ratings come with each question. None falls back to something that is not private.
"""
