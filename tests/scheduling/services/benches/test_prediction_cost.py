"""What learning and predicting take, measured small."""

from workshop.benches.worker.prediction_cost import measured


def test_passes_are_measured_in_a_process_and_database_of_their_own() -> None:
    found = measured(200, 60)

    assert found["live"] == 60
    assert found["learn_cpu_s"] > 0
    assert found["model_mib"] > 0
    assert found["predict_first_cpu_s"] > 0
    assert found["peak_mib"] > 0
