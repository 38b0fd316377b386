package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// partition routes what arrives to its conversations, and keeps what must
// outlive them: their boxes and the lease.
type partition struct {
	*runtime
	id            int
	lease         eventstore.Lease
	lost          func(error)
	conversations map[domain.Key]*child
	// dropping is set while everything is being let go.
	dropping *dropAll
	// cold are the conversations still to be rebuilt in the background.
	cold []domain.Key
}

// child is a conversation as its partition knows it.
type child struct {
	pid *actor.PID
	box *box
	// sent counts messages passed to the actor.
	sent uint64
	// leaving is set after the actor was told to stop; messages wait meanwhile.
	leaving bool
	waiting []any
	drained bool
}

func newPartition(rt *runtime, id int) *partition {
	return &partition{runtime: rt, id: id, conversations: map[domain.Key]*child{}}
}

// Receive is called by the actor system only.
func (p *partition) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *gained:
		p.lease, p.lost = m.lease, m.lost
	case *arrived:
		p.pass(c, m.key, &deliver{item: m.item})
	case *warm:
		p.cold = m.keys
		p.warmUp(c)
	case *warmedUp:
		p.warmUp(c)
	case *rollCall:
		if p.lost == nil || p.dropping != nil {
			close(m.out) // not ours now: the caller tries again or leaves it out
			return
		}
		p.pass(c, m.key, m)
	case *tick:
		p.warmUp(c) // should the one before have crashed
		for _, ch := range p.conversations {
			if !ch.leaving {
				ch.sent++
				c.Send(ch.pid, m)
			}
		}
	case *passivate:
		if ch := p.conversations[m.key]; ch != nil && !ch.leaving && ch.sent == m.seen {
			ch.leaving = true
			c.Poison(ch.pid)
		}
	case *dropAll:
		p.drop(c, m)
	case *drained:
		if ch := p.conversations[m.key]; ch != nil && p.dropping != nil {
			ch.drained = true
			p.stopWhenDrained(c)
		}
	case *actor.Terminated:
		p.gone(c, m.Who)
	}
}

// pass hands a message to the conversation, which is made when it is not there.
// While the partition is not held, messages are dropped: the inbox still has
// them and gives them to the next holder.
func (p *partition) pass(c actor.Context, key domain.Key, message any) {
	if p.lost == nil || p.dropping != nil {
		return
	}
	ch := p.conversations[key]
	if ch == nil {
		ch = &child{box: &box{key: key}}
		p.conversations[key] = ch
		p.spawn(c, ch)
	}
	if ch.leaving {
		ch.waiting = append(ch.waiting, message)
		return
	}
	ch.sent++
	c.Send(ch.pid, message)
}

func (p *partition) spawn(c actor.Context, ch *child) {
	lease, lost, parent := p.lease, p.lost, c.Self()
	props := actor.PropsFromProducer(func() actor.Actor {
		return &conversation{runtime: p.runtime, box: ch.box, lease: lease, lost: lost, parent: parent}
	}, supervisor(p.Log))
	pid, err := c.SpawnNamed(props, ch.box.key.String())
	if err != nil {
		panic(err) // the name is taken: our book-keeping is wrong
	}
	ch.pid, ch.sent, ch.leaving, ch.drained = pid, 0, false, false
	ch.box.seen = 0
}

// warmUp rebuilds the next cold conversation. They are loaded one after the
// other, so that the bound counts what is there, and who works is not held up.
func (p *partition) warmUp(c actor.Context) {
	if len(p.cold) == 0 {
		return
	}
	if p.lost == nil || p.dropping != nil || p.warmed.Load() >= int64(p.WarmMembers) {
		p.cold = nil
		return
	}
	key := p.cold[0]
	p.cold = p.cold[1:]
	p.pass(c, key, &keepWarm{})
}

// drop begins to let go of everything. A drain asks each conversation to
// suspend its runs first; a lost partition stops them where they are.
func (p *partition) drop(c actor.Context, m *dropAll) {
	p.dropping = m
	for _, ch := range p.conversations {
		switch {
		case ch.leaving:
		case m.drain:
			c.Send(ch.pid, &drain{})
		default:
			ch.leaving = true
			c.Stop(ch.pid)
		}
	}
	p.finishDrop()
}

func (p *partition) stopWhenDrained(c actor.Context) {
	for _, ch := range p.conversations {
		if !ch.drained && !ch.leaving {
			return
		}
	}
	for _, ch := range p.conversations {
		if !ch.leaving {
			ch.leaving = true
			c.Stop(ch.pid)
		}
	}
}

func (p *partition) finishDrop() {
	if p.dropping != nil && len(p.conversations) == 0 {
		close(p.dropping.done)
		p.dropping, p.lost = nil, nil
	}
}

// gone forgets a conversation that left, or makes it again when messages came
// for it meanwhile.
func (p *partition) gone(c actor.Context, pid *actor.PID) {
	for key, ch := range p.conversations {
		if ch.pid.GetId() != pid.GetId() {
			continue
		}
		waiting := ch.waiting
		ch.waiting = nil
		if len(waiting) == 0 || p.dropping != nil {
			delete(p.conversations, key)
			p.finishDrop()
			return
		}
		p.spawn(c, ch)
		for _, m := range waiting {
			p.pass(c, key, m)
		}
		return
	}
}
