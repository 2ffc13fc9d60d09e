"""What MLflow runs to load a saved model: code in a file, in the place of a pickle.

MLflow copies this text beside the model file; it is no part of tacit's own interface.
"""

from mlflow.models import set_model

from tacit.integrations.mlflow import PrivateModel

set_model(PrivateModel())
