package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func natsMsg(subject string, data []byte, contentType string) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = data
	m.Header.Set("Content-Type", contentType)
	return m
}

func (w *world) keys() []domain.Key {
	var all []int
	for p := range domain.Partitions {
		all = append(all, p)
	}
	keys, err := w.store.Conversations(w.t.Context(), all)
	if err != nil {
		w.t.Fatal(err)
	}
	return keys
}

// A read shows at least what its reader has been told, without asking for it.
func TestReadsSeeWhatWasAnswered(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	for i := range 20 {
		a := w.say(key, fmt.Sprint("word ", i))
		d, err := w.client.Show(w.context(), api.ReadRequest{Conversation: key.Conversation})
		if err != nil || d.Version < a.Version {
			t.Fatalf("answered with version %d, read version %d, %v", a.Version, d.Version, err)
		}
	}
}

// Every version can be read, and reads as it did when it was the newest.
func TestReadAtVersion(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor", "Backend")
	then := map[uint64]api.Detail{}
	for i := range 5 {
		d, err := w.client.Show(w.context(), api.ReadRequest{Conversation: key.Conversation})
		if err != nil {
			t.Fatal(err)
		}
		then[d.Version] = d
		w.say(key, fmt.Sprint("word ", i))
	}
	for v, want := range then {
		got, err := w.client.Show(w.context(), api.ReadRequest{Conversation: "harbor", At: v})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
			t.Errorf("version %d reads otherwise now:\n%s", v, diff)
		}
	}
	mail, err := w.client.Mail(w.context(), api.MailRequest{ReadRequest: api.ReadRequest{Conversation: "harbor", At: 2}})
	if err != nil || mail.Version != 2 || strings.Contains(asJSON(t, mail), "word 3") {
		t.Errorf("mail at version 2: %+v, %v", mail, err)
	}
	refused(t, errOf(w.client.Show(w.context(), api.ReadRequest{Conversation: "harbor", At: 99})), "version-not-found", "ends at")
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadsOfMembers(t *testing.T) {
	w := newWorld(t)
	w.open("harbor", "Backend", "Фронтенд")
	d, err := w.client.Show(w.context(), api.ReadRequest{Conversation: "har", Member: "фрон"})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Members) != 1 || d.Members[0].Name != "Фронтенд" || len(d.Runs) != 1 || d.Runs[0].MemberID != "m2" {
		t.Errorf("shown: %+v", d)
	}
	sources := map[string]string{}
	for _, tool := range d.Tools {
		sources[tool.Name] = tool.Source
	}
	if sources["send_message"] != "contract" {
		t.Errorf("tools: %v", sources)
	}
	refused(t, errOf(w.client.Show(w.context(), api.ReadRequest{Conversation: "harbor", Member: "Nobody"})), "member-not-found", "Backend", "Фронтенд")
	w.open("harbour")
	refused(t, errOf(w.client.Show(w.context(), api.ReadRequest{Conversation: "har"})), "conversation-ambiguous", "harbor", "harbour")
	list, err := w.client.List(w.context())
	if err != nil || len(list.Conversations) != 2 {
		t.Errorf("listed %+v, %v", list, err)
	}
}

func TestRollIsInTheOrderOfJoining(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	for _, id := range []string{"m10", "m2", "lead", "m1"} {
		w.rolls = append(w.rolls, api.MemberRoll{Conversation: key.Conversation, ID: id})
	}
	got, err := w.client.Roll(w.context(), api.ReadRequest{Conversation: "harbor"})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range got.Members {
		ids = append(ids, m.ID)
	}
	if strings.Join(ids, " ") != "lead m1 m2 m10" {
		t.Errorf("answered in the order %v", ids)
	}
}

func TestDoctorAndInfo(t *testing.T) {
	w := newWorld(t)
	d, err := w.client.Doctor(w.context())
	if err != nil || d.Node != "n-test" || len(d.Checks) != 1 {
		t.Errorf("doctor: %+v, %v", d, err)
	}
	i, err := w.client.Info(w.context())
	if err != nil || i.Node != "n-test" || i.Version != "1.2.3" || i.MaxText != api.MaxText {
		t.Errorf("info: %+v, %v", i, err)
	}
}

// Reads answer in protobuf, too: a Struct of the same fields.
func TestReadInProtobuf(t *testing.T) {
	w := newWorld(t)
	w.open("harbor")
	req, err := proto.Marshal(&structpb.Struct{Fields: map[string]*structpb.Value{"conversation": structpb.NewStringValue("harbor")}})
	if err != nil {
		t.Fatal(err)
	}
	got := new(structpb.Struct)
	w.askProto("show", req, got)
	text, err := protojson.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var d api.Detail
	if err := json.Unmarshal(text, &d); err != nil || d.Name != "harbor" || d.Version != 1 {
		t.Errorf("answered %s, %v", text, err)
	}
	refusal := new(rollcallv1.Refusal)
	w.askProto("show", nil, refusal)
	if refusal.GetCode() != "request-invalid" {
		t.Errorf("answered %v", refusal)
	}
	w.askProto("show", []byte{0xff}, refusal)
	if refusal.GetCode() != "request-invalid" {
		t.Errorf("garbage was answered with %v", refusal)
	}
}

// The log comes in pages, whole and in order, whatever its commits weigh.
func TestLogPages(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor", "Backend")
	for range 20 {
		w.say(key, strings.Repeat("w", 60<<10))
	}
	last := w.position(key).Version
	var raws [][]byte
	var hash []byte
	got, err := w.client.Log(w.context(), "harbor", 1, func(raw []byte) error {
		c, err := domain.Unseal(raw)
		if err == nil {
			err = domain.CheckNext(uint64(len(raws)), hash, c)
		}
		if err != nil {
			return err
		}
		hash = c.GetHash()
		raws = append(raws, raw)
		return nil
	})
	if err != nil || got != key || uint64(len(raws)) != last {
		t.Fatalf("read %d versions of %d of %v, %v", len(raws), last, got, err)
	}
	for _, from := range []uint64{2, last, last + 1, last + 100} {
		n := 0
		_, err := w.client.Log(w.context(), key.Conversation, from, func(raw []byte) error {
			if string(raw) != string(raws[from-1+uint64(n)]) {
				t.Errorf("from %d: page entry %d is another commit", from, n)
			}
			n++
			return nil
		})
		if want := max(0, int(last)+1-int(from)); err != nil || n != want {
			t.Errorf("from %d: %d commits, want %d, %v", from, n, want, err)
		}
	}
	// In JSON: names of members that joined before the page are known.
	versions := 0
	for from := uint64(2); ; {
		page, err := w.client.LogJSON(w.context(), api.LogRequest{ReadRequest: api.ReadRequest{Conversation: "harbor"}, From: from, Raw: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Commits {
			if c.Version != from || string(c.Raw) != string(raws[from-1]) {
				t.Fatalf("version %d came where %d was due, or with other bytes", c.Version, from)
			}
			from++
			versions++
		}
		if !page.More {
			break
		}
	}
	if versions != int(last)-1 {
		t.Errorf("read %d versions in JSON, want %d", versions, last-1)
	}
	_, err = w.client.Log(w.context(), "01jzzzzzzzzzzzzzzzzzzzzzzz", 1, func([]byte) error { return nil })
	refused(t, err, "conversation-not-found")
}

// A log that cannot be trusted is refused by name, and the others go on.
func TestBrokenLogIsRefused(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	other := w.open("quay")
	raw := []byte("not what it says")
	if _, err := w.store.Inject(t.Context(), key, raw, true); err != nil {
		t.Fatal(err)
	}
	refused(t, errOf(w.client.Show(w.context(), api.ReadRequest{Conversation: key.Conversation})), "log-broken", "verify")
	_, err := w.client.Log(w.context(), key.Conversation, 1, func([]byte) error { return nil })
	if got := api.ExitCode(refused(t, err, "log-broken")); got != api.ExitFailed {
		t.Errorf("exit %d", got)
	}
	if _, err := w.client.Show(w.context(), api.ReadRequest{Conversation: other.Conversation}); err != nil {
		t.Errorf("the other conversation: %v", err)
	}
}

// An answer larger than a message comes in parts to whoever can take them.
func TestLargeAnswersComeInParts(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	var version uint64
	for i := range 36 {
		a, err := w.client.ChangeTask(w.context(), "harbor", &rollcallv1.ChangeTask{
			Operation: rollcallv1.ChangeTask_OPERATION_ADD, Title: fmt.Sprint("task ", i), Description: strings.Repeat("d", 30<<10), Owner: "nobody",
		})
		if err != nil {
			t.Fatal(err)
		}
		version = a.Version
	}
	d, err := w.client.Show(w.context(), api.ReadRequest{Conversation: key.Conversation, AtLeast: version})
	if err != nil || len(d.Tasks.List) != 36 || len(d.Tasks.List[35].Description) != 30<<10 {
		t.Errorf("%d tasks, %v", len(d.Tasks.List), err)
	}
	if _, refused := w.ask("show", `{"conversation":"harbor"}`); refused == nil || refused.Code != "answer-too-large" || !strings.Contains(refused.Try, api.HeaderParts) {
		t.Errorf("without the header: %+v", refused)
	}
}

func TestFiles(t *testing.T) {
	w := newWorld(t)
	id := api.NewID()
	data := make([]byte, 5<<20+17)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	o := &rollcallv1.OpenConversation{Conversation: id, Name: "harbor", Contract: "mailbox", Objective: &rollcallv1.Body{Text: "go"}}
	for name, content := range map[string][]byte{"big.bin": data, "empty.txt": nil, "sub/small.txt": []byte("hi")} {
		blob, err := w.client.Upload(w.context(), id, content)
		if err != nil {
			t.Fatalf("upload %s: %v", name, err)
		}
		o.Files = append(o.Files, &rollcallv1.FileChange{Path: name, Blob: blob})
	}
	if _, err := w.client.Open(w.context(), o); err != nil {
		t.Fatal(err)
	}
	list, err := w.client.Files(w.context(), api.ReadRequest{Conversation: "harbor", Member: "lead"})
	if err != nil || len(list.Files) != 3 {
		t.Fatalf("listed %+v, %v", list, err)
	}
	for _, f := range list.Files {
		got, err := w.client.Blob(w.context(), id, api.BlobRef(f.BlobRef))
		if err != nil || uint64(len(got)) != f.Size || f.Path == "big.bin" && string(got) != string(data) {
			t.Errorf("%s: %d bytes, %v", f.Path, len(got), err)
		}
	}
	missing := api.BlobRef{SHA256: strings.Repeat("0", 64), Size: 1}
	refused(t, errOf(w.client.Blob(w.context(), id, missing)), "blob-not-found")
}

func TestUploadRefusals(t *testing.T) {
	w := newWorld(t)
	id, sha := api.NewID(), strings.Repeat("ab", 32)
	for _, c := range []struct{ request, code string }{
		{`{"conversation":"harbor","sha256":"` + sha + `","size":1,"data":"AA=="}`, "request-invalid"},
		{`{"conversation":"` + id + `","sha256":"xyz","size":1,"data":"AA=="}`, "request-invalid"},
		{`{"conversation":"` + id + `","sha256":"` + sha + `","size":99999999999,"data":"AA=="}`, "file-too-large"},
		{`{"conversation":"` + id + `","sha256":"` + sha + `","size":1,"data":"AAAA"}`, "request-invalid"},
		{`{"conversation":"` + id + `","sha256":"` + sha + `","size":9,"offset":18446744073709551615,"data":"AAAA"}`, "request-invalid"},
		{`{"conversation":"` + id + `","sha256":"` + sha + `","size":9,"offset":3,"data":"AAAA"}`, "upload-lost"},
		{`{"conversation":"` + id + `","sha256":"` + sha + `","size":1,"data":"AA=="}`, "upload-damaged"},
	} {
		if _, refused := w.ask("upload", c.request); refused == nil || refused.Code != c.code {
			t.Errorf("%s: %+v, want %s", c.request, refused, c.code)
		}
	}
	if _, refused := w.ask("blob", `{"conversation":"`+id+`","sha256":"`+sha+`","offset":5}`); refused == nil || refused.Code != "blob-not-found" {
		t.Errorf("blob: %+v", refused)
	}
}

// What the inbox cannot take is refused and nothing is stored.
func TestInboxRefusals(t *testing.T) {
	for _, e := range []error{eventstore.ErrInboxFull, eventstore.ErrTooLarge} {
		w := newWorld(t)
		w.open("harbor")
		full := &fullStore{Store: w.store, err: e}
		nc := w.connect()
		s, err := api.Serve(nc, api.Config{Store: full, Views: w.views, Roller: w, Doctor: w})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.server.Close(); err != nil {
			t.Fatal(err)
		}
		code := map[error]string{eventstore.ErrInboxFull: "inbox-full", eventstore.ErrTooLarge: "text-too-long"}[e]
		refused(t, errOf(w.client.Pause(w.context(), "harbor")), code)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
