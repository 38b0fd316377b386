package checker

import (
	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// fact is an event where it stands in the log.
type fact struct {
	*rollcallv1.Event
	version uint64
	index   uint32
	// body is the message of the event's kind; nil when there is none.
	body proto.Message
	// member and run that an event inside of a run names; inside is false for
	// others. A RunStarted is not inside.
	member, run string
	inside      bool
}

func factOf(e *rollcallv1.Event, version uint64, index int) fact {
	f := fact{Event: e, version: version, index: uint32(index)}
	r := e.ProtoReflect()
	if field := r.WhichOneof(kinds); field != nil {
		f.body = r.Get(field).Message().Interface()
	}
	switch b := f.body.(type) {
	case *rollcallv1.RunStarted:
	case *rollcallv1.LeadReplied:
		f.member, f.run, f.inside = leadID, b.GetRun(), true
	case interface {
		GetRun() string
		GetMember() string
	}:
		f.member, f.run, f.inside = b.GetMember(), b.GetRun(), true
	}
	return f
}

var kinds = (&rollcallv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("kind")

// name of the event's kind, such as TaskCreated; empty when this build does not
// know it.
func (f fact) name() string {
	if f.body == nil {
		return ""
	}
	return string(f.body.ProtoReflect().Descriptor().Name())
}

// taskEvent is the task that an event of the board is about, and who caused it;
// by is empty for what follows from the board itself.
func (f fact) taskEvent() (task, by string, ok bool) {
	if c := f.GetTaskCreated(); c != nil {
		return c.GetTask(), c.GetCreator(), true
	}
	type ofTask interface{ GetTask() string }
	on, is := f.body.(ofTask)
	if !is || f.GetMessageDelivered() != nil || f.GetMemberAdded() != nil {
		return "", "", false
	}
	if caused, is := f.body.(interface{ GetBy() string }); is {
		by = caused.GetBy()
	}
	return on.GetTask(), by, true
}

// wakes is the table of the design: the kind of mail alone decides.
func wakes(kind rollcallv1.MailKind) bool {
	switch kind {
	case rollcallv1.MailKind_MAIL_KIND_TASK_NOTIFICATION, rollcallv1.MailKind_MAIL_KIND_CONTROL, rollcallv1.MailKind_MAIL_KIND_UNSPECIFIED:
		return false
	}
	return true
}

// cut reports the finish reasons of a reply that was broken off.
func cut(finish string) bool {
	return finish == "" || finish == "length" || finish == "content_filter" || finish == "too_large"
}

const (
	leadID    = "lead"
	operator  = "operator"
	framework = "framework"
	user      = "user"
)
