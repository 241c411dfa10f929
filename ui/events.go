package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// maxStreams is how many open pages are followed at once.
const maxStreams = 500

// streamWriteTime is how long a write to a stream may take. A peer that reads nothing for so long
// has gone, or hangs: its stream ends, so that others get its place.
const streamWriteTime = 10 * time.Second

// heartbeat is how often a stream says that it lives, so that no proxy ends it.
const heartbeat = 15 * time.Second

// fragment is a part of a page that has changed.
type fragment struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	hash uint64
}

// ages are the texts that change by themselves. The page's script counts them on.
var ages = regexp.MustCompile(`(<time class="age[^>]*>)[^<]*`)

var hashSeed = maphash.MakeSeed()

// serveEvents sends the parts of a page that change, as server-sent events, until the page is
// closed.
func (u *UI) serveEvents(w http.ResponseWriter, r *http.Request) {
	self, err := url.Parse(r.URL.Query().Get("page"))
	def, known := pages[""], true
	if err == nil {
		def, known = pages[self.Path]
	}
	if err != nil || !known {
		http.Error(w, "There is no such page.", http.StatusNotFound)
		return
	}
	if u.hub.streams.Add(1) > maxStreams {
		u.hub.streams.Add(-1)
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer u.hub.streams.Add(-1)
	shown := self.Query().Get("path")
	if u.checkPath(shown) != nil {
		shown = ""
	}
	defer u.hub.open(shown)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	stream := http.NewResponseController(w)
	asked := r.Clone(r.Context())
	asked.URL.Path, asked.URL.RawQuery = "/"+self.Path, self.RawQuery
	q := request{r.Context(), self.Query()}

	seen, _ := strconv.ParseInt(r.URL.Query().Get("seen"), 10, 64)
	hashes := map[string]uint64{}
	if s := u.hub.latest(); s.number == seen {
		for _, f := range u.renderFragments(q, def, s, asked) {
			hashes[f.ID] = f.hash
		}
	}
	// send writes a message. A writer that knows no deadline, such as a test's, has none.
	send := func(message string) error {
		if err := stream.SetWriteDeadline(time.Now().Add(streamWriteTime)); err != nil &&
			!errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := fmt.Fprint(w, message); err != nil {
			return err
		}
		if err := stream.Flush(); err != nil {
			return err
		}
		_ = stream.SetWriteDeadline(time.Time{}) // HTTP/2 ends a stream at its deadline also while nothing is written
		return nil
	}
	if send("retry: 2000\n\n") != nil {
		return
	}
	for {
		s, err := u.hub.waitBriefly(r.Context(), seen, heartbeat)
		if err != nil {
			return
		}
		message := ": alive\n\n"
		if s != nil {
			seen = s.number
			changed := []fragment{}
			for _, f := range u.renderFragments(q, def, s, asked) {
				if hashes[f.ID] != f.hash {
					hashes[f.ID] = f.hash
					changed = append(changed, f)
				}
			}
			text, err := json.Marshal(changed)
			if err != nil {
				return
			}
			message = fmt.Sprintf("data: %s\n\n", text)
		}
		if send(message) != nil {
			return
		}
	}
}

// renderFragments renders the parts of a page, once for all visitors. It leaves out those
// that cannot be read at present.
func (u *UI) renderFragments(q request, def *pageDef, s *snapshot, r *http.Request) []fragment {
	key := fragmentsOf + r.URL.Path + "?" + r.URL.RawQuery
	all, _ := read(q.ctx, u.hub, s, key, func(ctx context.Context) ([]fragment, error) {
		p, err := u.buildFrom(request{ctx, q.query}, def, s, r)
		var all []fragment
		for _, id := range def.fragments {
			if err == nil || id == "f-live" || id == "f-nav" {
				all = append(all, renderFragment(def, id, p))
			}
		}
		return all, nil
	})
	return all
}

// renderFragment renders a part of a page, and hashes it without its ages.
func renderFragment(def *pageDef, id string, p page) fragment {
	var out bytes.Buffer
	if err := def.template.ExecuteTemplate(&out, id, p); err != nil {
		out.Reset()
	}
	return fragment{id, out.String(), maphash.Bytes(hashSeed, ages.ReplaceAll(out.Bytes(), []byte("$1")))}
}
