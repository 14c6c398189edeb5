"""Records handed out, processed and committed."""

from confluent_kafka import Message

from headrace.client.progress import ReadProgress

A, B = ("t", 0), ("t", 1)


def records(*places: tuple[tuple[str, int], int]) -> list[Message]:
    return [
        Message(topic=place[0], partition=place[1], offset=offset, value=b"%d" % offset)
        for place, offset in places
    ]


def in_hand(*places: tuple[tuple[str, int], int]) -> ReadProgress:
    """A progress whose application has been given all of these at once."""
    progress = ReadProgress()
    progress.keep_unread(records(*places))
    progress.hand_out()
    return progress


def test_a_batch_is_processed_when_the_next_is_requested() -> None:
    progress = in_hand((A, 0), (B, 7), (A, 1))
    assert progress.uncommitted == {}
    assert progress.settle()
    assert progress.uncommitted == {A: 2, B: 8}


def test_a_commit_counts_all_that_was_handed_out() -> None:
    progress = in_hand((A, 0), (A, 1))
    assert progress.to_commit() == {A: 2}


def test_a_commit_in_a_loop_counts_up_to_the_current_record() -> None:
    progress = ReadProgress()
    progress.keep_unread(records((A, 0), (A, 1), (A, 2)))
    handing = progress.hand_out_singly()
    next(handing)
    next(handing)
    assert progress.to_commit() == {A: 2}
    progress.note_commit()
    next(handing)
    assert progress.to_commit() == {A: 3}


def test_committed_offsets_are_not_committed_again() -> None:
    progress = in_hand((A, 0))
    progress.note_commit()
    assert not progress.settle()
    assert (progress.to_commit(), progress.position(A)) == ({}, 1)


def test_records_that_a_loop_leaves_stay_unread() -> None:
    progress = ReadProgress()
    progress.keep_unread(records((A, 0), (A, 1), (A, 2)))
    next(progress.hand_out_singly())
    progress.settle()
    assert [message.offset() for message in progress.hand_out()] == [1, 2]
    assert progress.uncommitted == {A: 1}


def test_after_an_error_in_a_loop_the_current_record_is_not_processed() -> None:
    progress = ReadProgress()
    progress.keep_unread(records((A, 0), (A, 1), (A, 2)))
    handing = progress.hand_out_singly()
    next(handing)
    next(handing)
    progress.settle_after_error()
    assert progress.uncommitted == {A: 1}


def test_after_an_error_a_batch_is_not_processed() -> None:
    progress = in_hand((A, 0), (A, 1))
    progress.settle_after_error()
    assert progress.uncommitted == {}


def test_an_error_keeps_offsets_that_were_settled_before() -> None:
    progress = in_hand((A, 0))
    progress.settle()
    progress.settle_after_error()
    assert progress.uncommitted == {A: 1}


def test_dropped_partitions_are_neither_handed_out_nor_committed() -> None:
    progress = ReadProgress()
    progress.keep_unread(records((A, 0), (B, 0), (A, 1), (B, 1)))
    handing = progress.hand_out_singly()
    seen = [next(handing), next(handing)]
    progress.drop({A})
    seen += handing
    assert [(message.partition(), message.offset()) for message in seen] == [(0, 0), (1, 0), (1, 1)]
    assert progress.to_commit() == {B: 2}


def test_dropped_partitions_have_no_position() -> None:
    progress = in_hand((A, 0))
    progress.settle()
    progress.drop({A})
    assert (progress.position(A), progress.uncommitted) == (None, {})


def test_the_application_may_change_its_list() -> None:
    progress = ReadProgress()
    progress.keep_unread(records((A, 0), (A, 1)))
    progress.hand_out().clear()
    assert progress.to_commit() == {A: 2}


def test_the_first_offset_of_each_partition_in_hand_is_returned() -> None:
    assert in_hand((A, 3), (B, 9), (A, 4)).first_offsets() == {A: 3, B: 9}


def test_records_beyond_the_limit_stay_unread() -> None:
    progress = ReadProgress()
    progress.keep_unread(records((A, 0), (A, 1), (A, 2)))
    given = progress.hand_out_within(25, lambda _: 10)
    assert [one.offset() for one in given] == [0, 1]
    assert progress.to_commit() == {A: 2}
    progress.settle()
    assert [one.offset() for one in progress.hand_out_within(25, lambda _: 10)] == [2]


def test_one_record_is_handed_out_however_large() -> None:
    progress = ReadProgress()
    progress.keep_unread(records((A, 0), (A, 1)))
    assert [one.offset() for one in progress.hand_out_within(5, lambda _: 10)] == [0]
