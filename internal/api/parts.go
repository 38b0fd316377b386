package api

// An answer larger than a message may be comes in parts, if the request says
// with HeaderParts that it can take them: messages in order, each numbered by
// HeaderPart as "2/5".
const (
	HeaderParts = "Rollcall-Parts"
	HeaderPart  = "Rollcall-Part"
	// HeaderWorking, in a request, asks to hear every second that it is worked
	// on: by empty messages that carry it.
	HeaderWorking = "Rollcall-Working"
)

// partBytes is the size of a part; an answer up to maxWhole is one message.
const (
	partBytes = 512 << 10
	maxWhole  = 960 << 10
)

func split(body []byte) [][]byte {
	if len(body) <= maxWhole {
		return [][]byte{body}
	}
	var parts [][]byte
	for len(body) > 0 {
		n := min(partBytes, len(body))
		parts = append(parts, body[:n])
		body = body[n:]
	}
	return parts
}
