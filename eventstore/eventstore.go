// Package eventstore keeps the log, its snapshots and its large bodies, the
// inbox, the timers and the leases on NATS JetStream.
//
// It knows conversations only as sealed commits under a key; what they mean is
// package domain's. The interfaces below are the seam: package memory
// implements them for tests in virtual time, this package on JetStream, and
// package storetest holds both to one suite.
package eventstore

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Errors of the seam. Everything else that an implementation returns is
// transient unless it wraps one of domain.ErrGap, domain.ErrHash.
var (
	// ErrConflict: another commit took the place. Load the tail and decide again.
	ErrConflict = errors.New("another writer appended first")
	// ErrUnknown: the fate of an append is unknown. Append the identical bytes
	// again before deciding anything else.
	ErrUnknown = errors.New("fate of the append is unknown")
	// ErrTooLarge: a commit over MaxCommit, or an inbox message over MaxInbox.
	ErrTooLarge = errors.New("too large to store")
	// ErrMissingBlob: the log names a body that the object store does not hold.
	ErrMissingBlob = errors.New("a stored body is missing")
	// ErrInboxFull: the inbox reached its limit; nothing was stored.
	ErrInboxFull = errors.New("the inbox is full")
	// ErrPartitionLost: another node owns the partition now.
	ErrPartitionLost = errors.New("partition lost")
	// ErrHeld: the partition is held by another node.
	ErrHeld = errors.New("partition held by another node")
	// ErrNotFound: no such conversation or version.
	ErrNotFound = errors.New("not found")
)

// Limits of what is stored, in bytes.
const (
	MaxCommit  = 768 << 10
	MaxInbox   = domain.MaxMessage
	InlineBody = domain.MaxInline
)

// Position is a place in a conversation's log. The zero Position is before
// the first commit.
type Position struct {
	Version uint64
	// Seq is the stream sequence of that version.
	Seq uint64
	// Hash of that version.
	Hash []byte
}

// Recorded is a commit as it is stored.
type Recorded struct {
	Key    domain.Key
	Seq    uint64
	Commit *rollcallv1.Commit
	// Raw is the sealed bytes.
	Raw []byte
	// Header of the message, where it was read from a stream; a reader that asked
	// by direct get finds the server's own in it too.
	Header map[string][]string
}

// Position of the recorded commit.
func (r Recorded) Position() Position {
	return Position{Version: r.Commit.GetVersion(), Seq: r.Seq, Hash: r.Commit.GetHash()}
}

// Log appends and reads commits.
type Log interface {
	// Append seals c and stores it after the given position. It answers only
	// when the commit is durable. A lost acknowledgement is found by reading
	// back: the commit's own presence is success. Errors: ErrConflict,
	// ErrUnknown, ErrTooLarge.
	Append(ctx context.Context, key domain.Key, after Position, c *rollcallv1.Commit) (Recorded, error)
	// Load calls fn with every commit after the position, in order, up to the
	// last one that the leader holds. It checks versions and hashes, and
	// returns domain.ErrGap or domain.ErrHash when they do not hold.
	Load(ctx context.Context, key domain.Key, after Position, fn func(Recorded) error) error
	// At returns the commits of the given versions, each checked by its hash.
	// Recent ones come from memory and are shared: nobody may change them.
	// Errors: ErrNotFound.
	At(ctx context.Context, key domain.Key, versions []uint64) (map[uint64]*rollcallv1.Commit, error)
	// Follow calls fn with every commit of all conversations whose stream
	// sequence is above seq, in stream order, until ctx ends or fn fails. A
	// message that is no commit is passed to skipped and never fatal.
	Follow(ctx context.Context, seq uint64, fn func(Recorded) error, skipped func(seq uint64, subject string, err error)) error
	// Current waits until the log's leader has heard from most of its replicas
	// since Current was called: what it has then is all that was acknowledged
	// before. A leader that was cut off answers from the past until it notices.
	Current(ctx context.Context) error
	// LastSeq is the last sequence of the stream. It waits until most replicas
	// have a leader to tell it.
	LastSeq(ctx context.Context) (uint64, error)
	// Conversations lists the keys that have commits in the given partitions.
	Conversations(ctx context.Context, partitions []int) ([]domain.Key, error)
}

// Snapshot is a cached state. It counts only if the log holds its version and
// hash and the evolve version is the reader's.
type Snapshot struct {
	Position      Position
	EvolveVersion uint32
	Data          []byte
}

// Snapshots caches states.
type Snapshots interface {
	SaveSnapshot(ctx context.Context, key domain.Key, s Snapshot) error
	// LoadSnapshot reports false when there is none that counts.
	LoadSnapshot(ctx context.Context, key domain.Key, evolveVersion uint32) (Snapshot, bool, error)
}

// Blobs keeps large bodies and files by content hash.
type Blobs interface {
	// PutBlob is idempotent: the same bytes have the same address.
	PutBlob(ctx context.Context, key domain.Key, data []byte) (*rollcallv1.Blob, error)
	// GetBlob checks the hash. Errors: ErrMissingBlob, domain.ErrHash.
	GetBlob(ctx context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error)
}

// Envelope is a message from outside, as it was published.
type Envelope struct {
	Key domain.Key
	// To is a member's short id, or "_" for a command that is no message.
	To     string
	Header map[string]string
	Data   []byte
}

// Headers that publishers and nodes use.
const (
	HeaderID          = "Rollcall-Id"
	HeaderReply       = "Rollcall-Reply"
	HeaderContentType = "Content-Type"
	HeaderMsgID       = "Nats-Msg-Id"
)

// Delivery is one inbox message in the hands of the partition's owner. It
// stays unacknowledged until Ack or Dead; Hold extends it.
type Delivery interface {
	Envelope() Envelope
	// Seq is the sequence in the inbox stream; Time when it was stored.
	Seq() uint64
	Time() time.Time
	// Ack removes the message and waits until that is certain.
	Ack(ctx context.Context) error
	// Hold tells the store that the message is still being worked on.
	Hold() error
	// Dead moves the message to the dead letters with its reason, then
	// acknowledges it.
	Dead(ctx context.Context, reason string) error
}

// DeadLetter is a message that can never succeed.
type DeadLetter struct {
	Envelope Envelope
	Reason   string
	Time     time.Time
}

// Inbox takes messages in and hands them to partition owners.
type Inbox interface {
	// Publish stores a message. duplicate is true when JetStream dropped it as
	// a repetition within its short window. Errors: ErrInboxFull, ErrTooLarge.
	Publish(ctx context.Context, e Envelope) (seq uint64, duplicate bool, err error)
	// Receive takes the partition's messages for the holder of the lease: older
	// consumers are deleted, so everything unacknowledged comes at once and in
	// order.
	Receive(ctx context.Context, l Lease) (Receiver, error)
	DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error)
}

// Receiver is a partition's stream of deliveries.
type Receiver interface {
	// Next waits for a delivery. Errors: ErrPartitionLost, or ctx's.
	Next(ctx context.Context) (Delivery, error)
	// Close stops receiving; unacknowledged messages stay in the inbox.
	Close()
}

// Lease is a node's hold on a partition.
type Lease struct {
	Partition int
	Node      string
	// Epoch rises with every claim of the partition.
	Epoch uint64
	// TTL is how long the lease lasts without renewal.
	TTL time.Duration
}

// Leases decides who works on which partition.
type Leases interface {
	// Claim takes the partition. A node takes its own older claim over at once;
	// another's only when it has lapsed. Errors: ErrHeld.
	Claim(ctx context.Context, node string, partition int) (Lease, error)
	// Renew extends a lease for another TTL. Errors: ErrPartitionLost.
	Renew(ctx context.Context, l Lease) error
	Release(ctx context.Context, l Lease) error
}

// LeaseTTL is how long a lease lasts without renewal where nothing else is said.
const LeaseTTL = 5 * time.Second

// Timers wakes conversations later. A timer that is due comes in by the inbox,
// to "_", as a FireTimer command in protobuf, at least once, late rather than never.
type Timers interface {
	ArmTimer(ctx context.Context, key domain.Key, timer string, due time.Time) error
	CancelTimer(ctx context.Context, key domain.Key, timer string) error
}

// Store is the whole seam.
type Store interface {
	Log
	Snapshots
	Blobs
	Inbox
	Leases
	Nodes
	Timers
}

// AckWait is how long a delivery may go without Hold before it comes again.
const AckWait = 5 * time.Minute

// InboxDuplicates is the window in which the inbox drops a repeated
// HeaderMsgID. It is short because the id is compared across conversations.
const InboxDuplicates = 100 * time.Millisecond
