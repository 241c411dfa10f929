package ui_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

// svgBox is a box of a picture, as the page has it.
type svgBox struct {
	X, Y               int
	Class, Name, Below string
	Href               string
}

// svgPicture is a drawing in one direction.
type svgPicture struct {
	Width, Height int
	Boxes         []svgBox
	Arrows        []string // class and path
}

var (
	svgPictures = regexp.MustCompile(`(?s)<svg class="(wide|tall|)" width="(\d+)" height="(\d+)".*?\n</svg>`)
	svgBoxes    = regexp.MustCompile(`(?s)(?:<a href="([^"]*)">)?<svg class="node ([a-z]*)" x="(\d+)" y="(\d+)" ` +
		`width="148" height="48"><title>[^<]*</title><rect [^>]*>` +
		`<text class="strong"[^>]*>([^<]*)</text>(?:<(?:path|circle)[^>]*>)?<text[^>]*>([^<]*)</text></svg>`)
	svgArrows = regexp.MustCompile(`<path class="edge ([a-z]*)" marker-end="[^"]*" d="([^"]*)"/>`)
)

// picturesOn are the drawings of a page, by class. In each no two boxes overlap, and all are
// inside.
func picturesOn(t *testing.T, body string) map[string]svgPicture {
	t.Helper()
	all := map[string]svgPicture{}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	for _, found := range svgPictures.FindAllStringSubmatch(body, -1) {
		p := svgPicture{Width: number(found[2]), Height: number(found[3])}
		require.Equal(t, strings.Count(found[0], `class="node `), len(svgBoxes.FindAllString(found[0], -1)))
		for _, b := range svgBoxes.FindAllStringSubmatch(found[0], -1) {
			one := svgBox{number(b[3]), number(b[4]), b[2], b[5], b[6], b[1]}
			require.LessOrEqual(t, one.X+148, p.Width, one)
			require.LessOrEqual(t, one.Y+48, p.Height, one)
			for _, other := range p.Boxes {
				apart := one.X >= other.X+148 || other.X >= one.X+148 || one.Y >= other.Y+48 || other.Y >= one.Y+48
				require.True(t, apart, "%v is on %v", one, other)
			}
			p.Boxes = append(p.Boxes, one)
		}
		for _, a := range svgArrows.FindAllStringSubmatch(found[0], -1) {
			p.Arrows = append(p.Arrows, a[1]+" "+a[2])
		}
		all[found[1]] = p
	}
	return all
}

// graphSteps are the steps of a graph: name, " after ", and what it is after, separated by commas.
// Steps whose names begin with "stuck" do not end.
func graphSteps(texts ...string) (steps []workflow.AnyGraphStep[string]) {
	for _, text := range texts {
		name, after, _ := strings.Cut(text, " after ")
		step := workflow.GraphStep[string, int]{Name: name,
			Do: func(ctx context.Context, _ workflow.Key, _ string, _ workflow.GraphResults) (int, error) {
				if strings.HasPrefix(name, "stuck") {
					<-ctx.Done()
				}
				return 0, ctx.Err()
			}}
		if after != "" {
			step.After = strings.Split(after, ",")
		}
		steps = append(steps, step)
	}
	return steps
}

// runGraph runs a graph until the end of the test, and returns the page of its run.
func (on *trouble) runGraph(t *testing.T, id string, steps ...string) string {
	t.Helper()
	target := on.startGraph(t, id, steps...)
	time.Sleep(time.Minute)
	return text(t, on.get(t, target))
}

// startGraph runs a graph until the end of the test, and returns where the page of its run is.
func (on *trouble) startGraph(t *testing.T, id string, steps ...string) string {
	t.Helper()
	graph, err := workflow.NewGraph("graph", graphSteps(steps...)...)
	require.NoError(t, err)
	kind := workflow.NewKind[string, string]("kind-" + id)
	flows := workflow.New(on.zk.Member(t, "runs "+id, framework.Config{}).Client, "/flows-"+id)
	require.NoError(t, flows.Register(kind.Function(
		func(ctx context.Context, run *workflow.Run, input string) (string, error) {
			_, err := graph.Run(ctx, run, input)
			return "", err
		})))
	on.tasks.Go(func() { _ = flows.Work(on.ctx) })
	on.last = append(on.last, func() { _ = flows.Close(context.Background()) })
	_, err = kind.Start(on.ctx, flows, id, "input")
	require.NoError(t, err)
	return "workflow?path=/flows-" + id + "&id=" + id
}

func namesOf(boxes []svgBox) (names []string) {
	for _, b := range boxes {
		names = append(names, b.Name+" "+b.Below)
	}
	return names
}

// TestGraphOfAChain: one box beside or below the other, with straight arrows.
func TestGraphOfAChain(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		body := on.runGraph(t, "one", "first", "stuck after first", "last after stuck")
		pictures := picturesOn(t, body)
		wide, tall := pictures["wide"], pictures["tall"]
		require.Equal(t, []string{"first done, 0s", "stuck under way", "last for stuck"}, namesOf(wide.Boxes))
		require.Equal(t, namesOf(wide.Boxes), namesOf(tall.Boxes))
		for i, class := range []string{"good", "busy", "wait"} {
			require.Equal(t, svgBox{1 + i*192, 1, class, wide.Boxes[i].Name, wide.Boxes[i].Below,
				fmt.Sprintf("#step-0-%d", i)}, wide.Boxes[i])
			require.Equal(t, []int{1, 1 + i*92}, []int{tall.Boxes[i].X, tall.Boxes[i].Y})
			require.Contains(t, body, fmt.Sprintf(`<tr id="step-0-%d"`, i), "the link's aim")
		}
		require.Equal(t, []string{
			"done M149 25 C169 25 169 25 189 25",
			"next M341 25 C361 25 361 25 381 25",
		}, wide.Arrows)
		require.Contains(t, body, `aria-label="Graph graph, 3 steps: stuck under way. last waiting. first done. `+
			`The table below has the same."`)
		require.Contains(t, on.words(t, "workflow?path=/flows-one&id=one"),
			"first done – – took 0s stuck under way after first – – last waiting after stuck waits for stuck –")
	})
}

// TestGraphOfADiamond: both steps in the middle are in one layer, above and below the first. What
// follows from other arrows has none.
func TestGraphOfADiamond(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		wide := picturesOn(t, on.runGraph(t, "one", "a", "b after a", "stuck-c after a", "d after b,stuck-c,a"))["wide"]
		a, b, c, d := wide.Boxes[0], wide.Boxes[1], wide.Boxes[2], wide.Boxes[3]
		require.Equal(t, b.X, c.X)
		require.Equal(t, a.Y-b.Y, c.Y-a.Y)
		require.Equal(t, a.Y, d.Y)
		var classes []string
		for _, arrow := range wide.Arrows {
			class, _, _ := strings.Cut(arrow, " ")
			classes = append(classes, class)
		}
		require.Equal(t, []string{"done", "done", "done", "next"}, classes)
	})
}

// TestAnArrowPassesBoxes beside them, not behind them.
func TestAnArrowPassesBoxes(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		pictures := picturesOn(t, on.runGraph(t, "one", "a", "b after a", "c after b", "side", "d after c,side"))
		wide := pictures["wide"]
		side := slices.IndexFunc(wide.Boxes, func(b svgBox) bool { return b.Name == "side" })
		passes := 0
		for _, arrow := range wide.Arrows {
			line := regexp.MustCompile(`(\d+) (\d+) L(\d+) (\d+)`).FindAllStringSubmatch(arrow, -1)
			for _, l := range line {
				passes++
				from, _ := strconv.Atoi(l[1])
				y, _ := strconv.Atoi(l[2])
				require.Equal(t, l[2], l[4], "straight")
				for _, b := range wide.Boxes {
					require.False(t, b.X == from && y >= b.Y && y <= b.Y+48, "%s crosses %v", arrow, b)
				}
			}
		}
		require.Equal(t, 2, passes, "from side to d, past b and c: %v %v", wide.Boxes[side], wide.Arrows)
	})
}

// TestLargeGraphs are drawn with few boxes, of which some are several steps; what is under way is
// one.
func TestLargeGraphs(t *testing.T) {
	for name, test := range map[string]struct {
		steps []string
		boxes []string // of the wide picture
	}{
		"chain": {chainOfSteps(500, 250), []string{"step-0 done, 0s", "249 steps done", "stuck under way",
			"249 steps waiting"}},
		"fan": {fanOfSteps(499), []string{"first done, 0s", "stuck under way", "498 steps done", "last for stuck"}},
	} {
		t.Run(name, func(t *testing.T) {
			inTrouble(t, func(t *testing.T, on *trouble) {
				body := on.runGraph(t, "one", test.steps...)
				pictures := picturesOn(t, body)
				require.Equal(t, test.boxes, namesOf(pictures["wide"].Boxes))
				require.LessOrEqual(t, pictures["wide"].Width, 6*192)
				require.LessOrEqual(t, pictures["tall"].Width, 2*168)
				require.Contains(t, body, "several steps of one state are one box")
				require.Contains(t, body, "The first 200 steps; the JSON has all.")
				require.Less(t, len(body), 150_000)
			})
		})
	}
}

func chainOfSteps(n, stuck int) (steps []string) {
	before := ""
	for i := range n {
		name := fmt.Sprint("step-", i)
		if i == stuck {
			name = "stuck"
		}
		steps = append(steps, name+before)
		before = " after " + name
	}
	return steps
}

func fanOfSteps(n int) []string {
	steps, middle := []string{"first"}, []string{"stuck"}
	for i := range n - 1 {
		middle = append(middle, fmt.Sprint("step-", i))
	}
	for _, name := range middle {
		steps = append(steps, name+" after first")
	}
	return append(steps, "last after "+strings.Join(middle, ","))
}

// TestGraphsEscapeNames of steps, and cut long ones off.
func TestGraphsEscapeNames(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		body := on.runGraph(t, "one", `<script>alert(1)`, strings.Repeat("漢", 40), `"><b>&#x3c;`, "stuck")
		require.NotContains(t, body, "<b>")
		require.NotContains(t, body, "<script>alert")
		require.Contains(t, body, "漢漢漢漢漢漢漢…漢漢漢漢漢漢漢漢漢漢")
		require.Contains(t, body, "<title>&#34;&gt;&lt;b&gt;&amp;#x3c;</title>")
		require.Len(t, picturesOn(t, body)["wide"].Boxes, 4)
		checkBalance(t, body)
	})
}

// TestWhoWaitsForWhomIsDrawn: a waiter and a box for the others, above the holders of a deadlock.
// The last arrow leads back.
func TestWhoWaitsForWhomIsDrawn(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		first, second := on.member(t, "first", "first"), on.member(t, "second", "second")
		on.deadlock(t, first, second)
		time.Sleep(time.Second)
		for i := range 4 {
			waiter := on.member(t, fmt.Sprint("waiter ", i), fmt.Sprint("waiter ", i))
			on.wait(waiter, "/locks/a", on.hold(t, waiter, fmt.Sprint("/own/", i)))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		body := text(t, on.get(t, "lock?path=/locks/a"))
		p := picturesOn(t, body)[""]
		require.Equal(t, []string{"waiter 0 waits", "3 more wait", "first holds a", "second holds b"},
			namesOf(p.Boxes))
		require.Equal(t, "lock?path=%2Flocks%2Fb", p.Boxes[3].Href)
		require.Regexp(t, `^session\?id=0x`, p.Boxes[0].Href)
		require.Equal(t, p.Boxes[2].X, p.Boxes[3].X)
		require.Len(t, p.Arrows, 4)
		for i, class := range []string{"next", "next", "bad", "bad"} {
			require.True(t, strings.HasPrefix(p.Arrows[i], class+" "), p.Arrows)
		}
		require.Contains(t, body, `aria-label="waiter 0 waits for first. 3 more wait. `+
			`first holds a and waits for b. second holds b and waits for a. This is a deadlock."`)
	})
}
