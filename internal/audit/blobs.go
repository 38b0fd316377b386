package audit

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Blobs are the stored bodies and files that a commit names, each once.
func Blobs(c *rollcallv1.Commit) []*rollcallv1.Blob {
	var all []*rollcallv1.Blob
	blobsIn(c.ProtoReflect(), func(b *rollcallv1.Blob) {
		if !slices.ContainsFunc(all, func(o *rollcallv1.Blob) bool { return o.GetSha256() == b.GetSha256() }) {
			all = append(all, b)
		}
	})
	return all
}

// blobsIn finds the addresses of stored bytes anywhere in a message, also in
// kinds of events that are yet to come.
func blobsIn(m protoreflect.Message, found func(*rollcallv1.Blob)) {
	if b, ok := m.Interface().(*rollcallv1.Blob); ok {
		if b.GetSha256() != "" {
			found(b)
		}
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				blobsIn(v.List().Get(i).Message(), found)
			}
		case fd.IsMap():
			if fd.MapValue().Message() == nil {
				break
			}
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				blobsIn(v.Message(), found)
				return true
			})
		default:
			blobsIn(v.Message(), found)
		}
		return true
	})
}
