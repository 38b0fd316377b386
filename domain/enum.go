package domain

import (
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Word is an enum value as users read it: the name without its type's prefix,
// in lower case (TASK_STATUS_IN_PROGRESS is "in_progress"). A value that this
// build does not know is "unknown".
func Word(e protoreflect.Enum) string {
	d := e.Descriptor()
	v := d.Values().ByNumber(e.Number())
	if v == nil {
		return "unknown"
	}
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), enumPrefix(string(d.Name()))))
}

// enumPrefix turns TaskStatus into TASK_STATUS_.
func enumPrefix(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String() + "_"
}
