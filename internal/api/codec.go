package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	contentType     = "Content-Type"
	contentJSON     = "application/json"
	contentProtobuf = "application/protobuf"
)

// decodeJSON reads a request; an empty one is all zero. Unknown fields are
// ignored, as everywhere in JSON.
func decodeJSON(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return domain.Refuse("request-invalid", "the request is not the JSON that this verb takes",
			err.Error(), "see docs/json.md")
	}
	return nil
}

// structJSON turns a protobuf request of a read, a google.protobuf.Struct of
// the same fields, into JSON.
func structJSON(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, nil
	}
	s := new(structpb.Struct)
	if err := proto.Unmarshal(data, s); err != nil {
		return nil, badProtobuf("google.protobuf.Struct", err)
	}
	out, err := protojson.Marshal(s)
	if err != nil {
		return nil, badProtobuf("google.protobuf.Struct", err)
	}
	return out, nil
}

func badProtobuf(want string, err error) error {
	return domain.Refuse("request-invalid", "the request is not the protobuf that this verb takes",
		err.Error(), "send "+want+", or JSON with Content-Type: application/json")
}

// encodeDocument renders a read's answer: JSON, or in protobuf a message of
// its own where there is one and a google.protobuf.Struct otherwise.
func encodeDocument(doc any, binary bool) ([]byte, error) {
	if m, ok := doc.(proto.Message); ok {
		return proto.Marshal(m)
	}
	data, err := Marshal(doc)
	if err != nil || !binary {
		return data, err
	}
	s := new(structpb.Struct)
	if err := protojson.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return proto.Marshal(s)
}

func encodeAnswer(a *rollcallv1.Answer, binary bool) ([]byte, error) {
	if binary {
		return proto.Marshal(a)
	}
	return Marshal(answerBody(a))
}

func encodeError(e ErrorBody, binary bool) []byte {
	if binary {
		data, err := proto.Marshal(refusalProto(e.refusal()))
		if err != nil {
			return nil
		}
		return data
	}
	data, err := Marshal(e)
	if err != nil {
		return nil
	}
	return data
}

// Marshal is encoding/json without the escapes for HTML: people read it.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode json: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// headerText makes a text safe for a NATS header line.
func headerText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
