package ui

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Check is a part of an examination of the cluster.
type Check struct {
	Name   string `json:"check"`
	OK     bool   `json:"ok"`
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"` // what to do, if it is not OK; a Check that is OK and has one is a warning
}

// checkJSON is a Check as "lockstep doctor" prints it.
type checkJSON struct {
	Check
	Warning bool `json:"warning,omitempty"`
}

// examination is the latest examination of the cluster. A visitor starts it, and all visitors see
// its result.
type examination struct {
	running sync.Mutex // held while one runs

	mu     sync.Mutex
	at     time.Time // the end of the latest one
	checks []Check
	err    error
}

// examineTime is how long an examination may take.
const examineTime = time.Minute

type doctorView struct {
	Possible bool
	At       time.Time
	Checks   []Check
	Wrong    int
	Failed   string
	Commands []string
}

func buildDoctor(u *UI, _ request, _ *snapshot) (built, error) {
	e := &u.examined
	e.mu.Lock()
	defer e.mu.Unlock()
	v := doctorView{Possible: u.examine != nil, At: e.at,
		Commands: []string{"lockstep doctor " + shellWord(u.root)}}
	for _, c := range e.checks {
		if !c.OK {
			v.Wrong++
		}
	}
	if e.err != nil {
		v.Failed = e.err.Error()
	}
	rank := func(c Check) int { // what is wrong first, then warnings
		switch {
		case !c.OK:
			return 0
		case c.Advice != "":
			return 1
		}
		return 2
	}
	v.Checks = slices.SortedStableFunc(slices.Values(e.checks), func(a, b Check) int { return rank(a) - rank(b) })
	checks := []checkJSON{}
	for _, c := range e.checks {
		checks = append(checks, checkJSON{c, c.OK && c.Advice != ""})
	}
	return built{"Examination", v, checks}, nil
}

// serveExamine examines the cluster, unless an examination is under way.
func (u *UI) serveExamine(w http.ResponseWriter, r *http.Request) {
	if u.examine == nil {
		u.refuse(w, r, newPageError(http.StatusNotFound, "This page cannot examine", "Run lockstep doctor."))
		return
	}
	if err := u.mayDo(r, Action{Kind: ActionExamine}); err != nil {
		u.refuse(w, r, newPageError(http.StatusForbidden, "This action is not for you", err.Error()))
		return
	}
	e := &u.examined
	if !e.running.TryLock() {
		u.refuse(w, r, newPageError(http.StatusConflict, "An examination is under way",
			"Its result comes within a minute.").withBack("doctor"))
		return
	}
	defer e.running.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), examineTime)
	defer cancel()
	checks, err := u.examine(ctx)
	e.mu.Lock()
	e.at, e.checks, e.err = time.Now(), checks, err
	e.mu.Unlock()
	u.client.Logger().Info("examination on the web page", "who", u.userOf(r), "from", r.RemoteAddr, "error", err)
	http.Redirect(w, r, "doctor", http.StatusSeeOther)
}
