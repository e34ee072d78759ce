//! Values of metrics at a point in time.

use std::fmt;
use std::time::Duration;

use domain::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Returns the seconds since a time. Returns 0 for a time in the future and for `None`.
pub fn age_s(since: Option<Timestamp>, now: Timestamp) -> f64 {
    seconds(since.map_or(0, |since| now.ms_since(since)))
}

pub fn seconds(ms: i64) -> f64 {
    Duration::from_millis(ms.max(0).unsigned_abs()).as_secs_f64()
}

/// The values of a metric, by their labels.
#[derive(Debug)]
pub struct ByLabels<L, M>(pub Vec<(L, M)>);

impl<L: EncodeLabelSet, M: EncodeMetric + TypedMetric> EncodeMetric for ByLabels<L, M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, value) in &self.0 {
            value.encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The state of a histogram at a point in time.
#[derive(Clone, Debug)]
pub struct ConstHistogram {
    pub sum: f64,
    pub count: u64,
    /// Upper bounds, each with the number of values between it and the previous bound. The last
    /// bound is `f64::INFINITY`.
    pub buckets: Vec<(f64, u64)>,
}

impl TypedMetric for ConstHistogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for ConstHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_histogram::<NoLabelSet>(self.sum, self.count, &self.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
