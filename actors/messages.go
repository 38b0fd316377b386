package actors

import (
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// item is one command on its way to a decision. It outlives a crash of its
// conversation's actor (see box).
type item struct {
	command *rollcallv1.Command
	// delivery is the inbox message that brought it; nil for outcomes of runs.
	delivery eventstore.Delivery
	// reply is the subject to answer on; may be empty.
	reply string
	// redrove: the command took its conversation out of quarantine, which is
	// an effect even if it has no other.
	redrove bool
	// decided, if not nil, hears once what came of the command is durable: true
	// if its run still owes the step that it owed.
	decided chan bool
}

// Messages to a partition.
type (
	// gained: the node holds the partition's lease. lost ends the session.
	gained struct {
		lease eventstore.Lease
		lost  func(error)
	}
	// arrived: an inbox message for a conversation, decoded.
	arrived struct {
		key  domain.Key
		item *item
	}
	// warm: have these conversations in memory. Those with a state were rebuilt
	// since the partition was gained; the others are loaded in the background.
	warm struct {
		states []*loaded
		keys   []domain.Key
	}
	// dropAll: let go of every conversation at once; done is closed when all
	// are gone. With drain, open runs are suspended first, for that reason.
	dropAll struct {
		drain string
		done  chan struct{}
	}
	// drained: a conversation has nothing in flight any more.
	drained struct{ key domain.Key }
	// passivate: a conversation asks to leave memory. seen counts the messages
	// it got from the partition, so that none sent meanwhile is overlooked.
	passivate struct {
		key  domain.Key
		seen uint64
	}
	// warmedUp: a conversation that was to be rebuilt is there.
	warmedUp struct{}
	// tick comes every holdEvery.
	tick struct{}
)

// Messages to a conversation.
type (
	deliver struct{ item *item }
	// outcome is what a member's step came to.
	outcome struct{ item *item }
	loaded  struct {
		state *domain.State
		at    eventstore.Position
		// snapshot is the version of the snapshot it began from, 0 for none.
		snapshot uint64
		err      error
	}
	appended struct {
		recorded eventstore.Recorded
		err      error
	}
	drain      struct{ why string }
	keepWarm   struct{}
	timerArmed struct {
		timer string
		due   time.Time
	}
	rollCall struct {
		key domain.Key
		out chan<- []Present
	}
	// restarted: a member's actor crashed and is new; its step is lost.
	restarted struct{ member string }
	// present is a member's answer to the roll.
	present struct {
		call   *roll
		place  int
		member Present
	}
)

// Messages to a member.
type (
	// begin does one step in place of any other.
	begin struct {
		key string
		job job
	}
	// stopStep ends the step of that key, if it is still the present one.
	stopStep struct{ key string }
	stepDone struct {
		key     string
		command *rollcallv1.Command
		// wait before the next attempt.
		wait time.Duration
	}
	answerRoll struct {
		call  *roll
		place int
		as    Present
	}
)
