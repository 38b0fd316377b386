package domain

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// kinds maps the messages that are events to their field in Event.
var kinds = eventKinds()

func eventKinds() map[protoreflect.FullName]protoreflect.FieldDescriptor {
	found := map[protoreflect.FullName]protoreflect.FieldDescriptor{}
	fields := (&rollcallv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		found[f.Message().FullName()] = f
	}
	return found
}

// NewEvent wraps the message of an event, such as a TaskCreated. It panics on a
// message that is no event.
func NewEvent(m proto.Message) *rollcallv1.Event {
	field, ok := kinds[m.ProtoReflect().Descriptor().FullName()]
	if !ok {
		panic(fmt.Sprintf("domain: %T is no event", m))
	}
	e := new(rollcallv1.Event)
	e.ProtoReflect().Set(field, protoreflect.ValueOfMessage(m.ProtoReflect()))
	return e
}

// EventName is the name of an event's kind, such as "TaskCreated"; empty when
// this build does not know it.
func EventName(e *rollcallv1.Event) string {
	r := e.ProtoReflect()
	field := r.WhichOneof(r.Descriptor().Oneofs().ByName("kind"))
	if field == nil {
		return ""
	}
	return string(field.Message().Name())
}
