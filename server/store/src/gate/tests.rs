use tokio::sync::mpsc;

use super::*;

#[tokio::test]
async fn the_highest_goes_first_and_nobody_waits_for_ever() {
    let gate = Arc::new(Gate::new(vec![None]));
    let first = gate.enter(Priority::Bulk).await;
    let (served, mut turns) = mpsc::unbounded_channel();
    let waiting =
        [Priority::Bulk, Priority::Results].into_iter().chain([Priority::CommitGroup; 20]);
    for priority in waiting.clone() {
        let (gate, served) = (Arc::clone(&gate), served.clone());
        tokio::spawn(async move {
            let permit = gate.enter(priority).await;
            served.send(priority).unwrap();
            drop(permit);
        });
    }
    let queued = || lock(&gate.0).waiting.iter().map(VecDeque::len).sum::<usize>();
    while queued() < waiting.clone().count() {
        tokio::task::yield_now().await;
    }
    drop(first);
    let mut order = Vec::new();
    for _ in waiting {
        order.push(turns.recv().await.unwrap());
    }
    let slot = |wanted| order.iter().position(|served| *served == wanted);
    assert_eq!(order[0], Priority::CommitGroup);
    assert_eq!(slot(Priority::Results), Some(6));
    assert_eq!(slot(Priority::Bulk), Some(8));
}

#[tokio::test]
async fn a_permit_goes_past_a_waiter_that_has_left() {
    let gate = Arc::new(Gate::new(vec![None]));
    let first = gate.enter(Priority::CommitGroup).await;
    let left = tokio::spawn({
        let gate = Arc::clone(&gate);
        async move { drop(gate.enter(Priority::CommitGroup).await) }
    });
    while lock(&gate.0).waiting[0].is_empty() {
        tokio::task::yield_now().await;
    }
    left.abort();
    assert!(left.await.is_err());
    drop(first);
    drop(gate.enter(Priority::Bulk).await);
}
