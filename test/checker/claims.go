package checker

import (
	"fmt"
	"strings"
)

// claims holds the logs of an installation against each other: an epoch is that
// of one claim, of one partition by one node, whatever conversation it stands in.
func claims(logs []Log) (found []Finding) {
	type claim struct{ node, partition, conversation string }
	known := map[uint64]claim{}
	for _, l := range logs {
		var previous []byte
		for i, stored := range l.Commits {
			c, wrong := follows(stored.Sealed, uint64(i)+1, previous)
			if wrong != "" {
				break // said by the log's own reading
			}
			previous = c.GetHash()
			is := claim{c.GetNode(), strings.Split(subjectOf(l), ".")[2], l.Conversation}
			if c.GetEpoch() == 0 {
				continue // written by hand: no claim gives it
			}
			was, seen := known[c.GetEpoch()]
			if seen && (was.node != is.node || was.partition != is.partition) {
				found = append(found, Finding{
					Rule: "epoch", Conversation: l.Conversation, Version: c.GetVersion(),
					What: fmt.Sprintf("epoch %d is that of node %s on partition %s; in conversation %s it is that of %s on %s",
						c.GetEpoch(), is.node, is.partition, was.conversation, was.node, was.partition),
				})
				break
			}
			known[c.GetEpoch()] = is
		}
	}
	return found
}
