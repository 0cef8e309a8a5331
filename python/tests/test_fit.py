"""The estimators of rotrnn/fit.py: what they learn, their conventions, and wrong input."""

import pickle
import unittest

import numpy as np

import rotrnn


def waves(count, seed, length=60):
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    t = np.arange(length)
    x = np.sin(rng.uniform(0, 6.28, (count, 1)) + 0.3 * (y[:, None] + 1) * t) + 0.3 * rng.standard_normal((count, length))
    return x, np.array(["a", "b", "c"])[y]


class Classifier(unittest.TestCase):
    def test_learns_and_knows_its_error(self):
        x, y = waves(90, 1)
        model = rotrnn.RotationClassifier(states=128).fit(x, y)
        other, labels = waves(300, 2)
        self.assertGreater(model.score(other, labels), 0.9)
        self.assertAlmostEqual(model.report_["accuracy"], model.score(other, labels), delta=0.08)
        p = model.predict_proba(other)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(other))

    def test_layouts_give_the_same(self):
        x, y = waves(60, 1)
        deep = np.stack([x, x[:, ::-1]], axis=2)
        last = rotrnn.RotationClassifier(states=64).fit(deep, y).predict_proba(deep)
        first = rotrnn.RotationClassifier(states=64, layout="channels_first").fit(deep.transpose(0, 2, 1), y)
        np.testing.assert_array_equal(first.predict_proba(deep.transpose(0, 2, 1)), last)
        listed = rotrnn.RotationClassifier(states=64).fit(list(deep), y)
        np.testing.assert_array_equal(listed.predict_proba(list(deep)), last)

    def test_uneven_lengths(self):
        x, y = waves(60, 1)
        cut = [row[: 30 + i % 30] for i, row in enumerate(x)]
        model = rotrnn.RotationClassifier(states=64).fit(cut, y)
        self.assertGreater(model.score(cut, y), 0.9)

    def test_pickle_and_seed(self):
        x, y = waves(60, 1)
        model = rotrnn.RotationClassifier(states=64, random_state=3).fit(x, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
        other = rotrnn.RotationClassifier(states=64, random_state=4).fit(x, y)
        self.assertFalse(np.array_equal(other.decision_function(x), model.decision_function(x)))

    def test_weights_and_groups(self):
        x, y = waves(60, 1)
        weight = (np.arange(60) < 45).astype(float)
        weighted = rotrnn.RotationClassifier(states=64).fit(x, y, sample_weight=weight)
        self.assertEqual(weighted.report_["examples"], 45)
        grouped = rotrnn.RotationClassifier(states=64).fit(x, y, groups=np.arange(60) // 6)
        self.assertEqual(grouped.report_["estimate"], "leave one group out")

    def test_wrong_input(self):
        x, y = waves(12, 1)
        model = rotrnn.RotationClassifier(states=64)
        for bad, labels in ((x[:1], y[:1]), (x, np.zeros(12)), (np.where(x > 0.9, np.nan, x), y), (x, y[:5]), (x[0], y)):
            with self.assertRaises(ValueError):
                model.fit(bad, labels)
        with self.assertRaises(ValueError):
            rotrnn.RotationClassifier().predict(x)


class Regressor(unittest.TestCase):
    def test_frequency(self):
        rng = np.random.default_rng(4)
        speed = rng.uniform(0.2, 1.2, 160)
        x = np.sin(rng.uniform(0, 6.28, (160, 1)) + speed[:, None] * np.arange(60))
        model = rotrnn.RotationRegressor(states=128).fit(x[:120], 10 * speed[:120])
        self.assertGreater(model.score(x[120:], 10 * speed[120:]), 0.9)


class Transform(unittest.TestCase):
    def test_features_against_numpy(self):
        x, _ = waves(20, 1)
        model = rotrnn.RotationTransform(states=64).fit(x)
        out = model.transform(x)
        self.assertEqual(out.shape, (20, 6 * 64))
        shares = out[:, : 5 * 64] * x.shape[1]
        np.testing.assert_allclose(shares, np.round(shares), atol=1e-4)


class Conventions(unittest.TestCase):
    def test_check_estimator(self):
        try:
            from sklearn.utils.estimator_checks import check_estimator
        except ImportError:
            self.skipTest("scikit-learn is not installed")
        for estimator in (rotrnn.RotationClassifier(states=64), rotrnn.RotationRegressor(states=64),
                          rotrnn.RotationTransform(states=64)):
            check_estimator(estimator)
