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
	// touched are the conversations that were made since the partition was
	// gained, until it is warm: what was read of their logs may be old.
	touched map[domain.Key]bool
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
		p.lease, p.lost, p.touched = m.lease, m.lost, map[domain.Key]bool{}
	case *arrived:
		p.pass(c, m.key, &deliver{item: m.item})
	case *warm:
		p.keep(c, m.states)
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
		ch = p.add(c, key, nil)
	}
	if ch.leaving {
		ch.waiting = append(ch.waiting, message)
		return
	}
	ch.sent++
	c.Send(ch.pid, message)
}

// add makes a conversation's actor, with its state if that was read already.
func (p *partition) add(c actor.Context, key domain.Key, given *loaded) *child {
	ch := &child{box: &box{key: key}}
	p.conversations[key] = ch
	if p.touched != nil {
		p.touched[key] = true
	}
	p.spawn(c, ch, given)
	return ch
}

// keep makes the conversations whose states were just read, up to the bound.
func (p *partition) keep(c actor.Context, states []*loaded) {
	touched := p.touched
	p.touched = nil
	if p.lost == nil || p.dropping != nil {
		return
	}
	room := int64(p.WarmMembers) - p.warmed.Load()
	for _, l := range states {
		if room <= 0 {
			return
		}
		if !touched[l.state.Key] {
			p.add(c, l.state.Key, l)
			room -= int64(len(l.state.Members))
		}
	}
}

func (p *partition) spawn(c actor.Context, ch *child, given *loaded) {
	lease, lost, parent := p.lease, p.lost, c.Self()
	props := actor.PropsFromProducer(func() actor.Actor {
		first := given
		given = nil // a later life loads what the log says then
		return &conversation{runtime: p.runtime, box: ch.box, lease: lease, lost: lost, parent: parent, given: first}
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
		case m.drain != "":
			c.Send(ch.pid, &drain{why: m.drain})
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
		p.forgetAside(p.id)
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
		p.spawn(c, ch, nil)
		for _, m := range waiting {
			p.pass(c, key, m)
		}
		return
	}
}
