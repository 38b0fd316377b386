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
}

// name of the event's kind, such as TaskCreated; empty when this build does not
// know it.
func (f fact) name() string {
	r := f.ProtoReflect()
	field := r.WhichOneof(r.Descriptor().Oneofs().ByName("kind"))
	if field == nil {
		return ""
	}
	return string(field.Message().Name())
}

// body is the message of the event's kind; nil when there is none.
func (f fact) body() proto.Message {
	r := f.ProtoReflect()
	field := r.WhichOneof(r.Descriptor().Oneofs().ByName("kind"))
	if field == nil {
		return nil
	}
	return r.Get(field).Message().Interface()
}

// inRun is the member and the run that an event inside a run names; ok is false
// for events that happen outside of runs. A RunStarted is not inside.
func (f fact) inRun() (member, run string, ok bool) {
	if f.GetRunStarted() != nil {
		return "", "", false
	}
	if r := f.GetLeadReplied(); r != nil {
		return leadID, r.GetRun(), true
	}
	type inside interface {
		GetRun() string
		GetMember() string
	}
	if in, is := f.body().(inside); is {
		return in.GetMember(), in.GetRun(), true
	}
	return "", "", false
}

// taskEvent is the task that an event of the board is about, and who caused it;
// by is empty for what follows from the board itself.
func (f fact) taskEvent() (task, by string, ok bool) {
	if c := f.GetTaskCreated(); c != nil {
		return c.GetTask(), c.GetCreator(), true
	}
	type ofTask interface{ GetTask() string }
	on, is := f.body().(ofTask)
	if !is || f.GetMessageDelivered() != nil {
		return "", "", false
	}
	if caused, is := f.body().(interface{ GetBy() string }); is {
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
