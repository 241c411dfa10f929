package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// drawing shows boxes and arrows as SVG, with the same in words. If it has two pictures, one is
// wide and one is tall, and the style sheet shows the one that fits.
type drawing struct {
	Text     string
	Pictures []picture
}

// box is what a drawing shows in one of its layers.
type box struct {
	Layer int    // from 0 on
	Name  string // the first line; Title has all of it
	Below string // the second line
	Title string
	Class string   // "", "bad", "good", "busy", "wait"
	Mark  severity // of the second line, or ""
	Href  string
}

// boxArrow leads from one box to another, by their indices. One to an earlier layer, or to its own,
// goes around the boxes between, at the side.
type boxArrow struct {
	From, To int
	Class    string // "", "bad", "done", "next"
	Label    string
}

// picture is a drawing in one direction.
type picture struct {
	ID            string // of its markers, unique on the page
	Class         string // "wide", "tall", or "" if it is the only one
	Width, Height int
	Boxes         []drawnBox
	Arrows        []drawnArrow
}

type drawnBox struct {
	box
	X, Y int
}

type drawnArrow struct {
	Path, Class string
	Marker      string // of its head
	X, Y        int    // of the label
	Label       string
}

const (
	boxWidth   = 148
	boxHeight  = 48
	boxGap     = 20 // between boxes of a layer
	layerGap   = 44
	passWidth  = 8  // what an arrow takes of a layer that it passes
	aroundBox  = 60 // how far an arrow back goes to the side
	labelWidth = 7  // of a rune, at most
	headLength = 4  // between an arrow's end and the box
)

// layout is a picture in the making. Its slots are the boxes, and behind them the places at which
// arrows pass layers. Along and cross are the directions from layer to layer and within a layer.
type layout struct {
	across        bool // layers go from the left to the right
	layers        [][]int
	before, after map[int][]int // slots in the layers beside
	layerOf       []int
	middle        []int // of each slot, in the cross direction
	boxes         int
}

// draw places the boxes in their layers, each below or beside the boxes that it is connected with,
// and leads arrows between the boxes of the layers that they pass.
func draw(id, class string, boxes []box, arrows []boxArrow) picture {
	p := picture{ID: id, Class: class}
	l := layout{across: class == "wide", before: map[int][]int{}, after: map[int][]int{}, boxes: len(boxes)}
	for _, b := range boxes {
		l.addSlot(b.Layer)
	}
	routes := make([][]int, len(arrows)) // slots
	for i, a := range arrows {
		routes[i] = []int{a.From}
		for layer := boxes[a.From].Layer + 1; layer < boxes[a.To].Layer; layer++ {
			routes[i] = append(routes[i], l.addSlot(layer))
		}
		routes[i] = append(routes[i], a.To)
		if boxes[a.From].Layer >= boxes[a.To].Layer {
			continue
		}
		for k, slot := range routes[i][1:] {
			l.before[slot] = append(l.before[slot], routes[i][k])
			l.after[routes[i][k]] = append(l.after[routes[i][k]], slot)
		}
	}
	l.order()
	for slot, b := range boxes {
		x, y := l.at(l.start(slot), l.middle[slot]-l.breadth(slot)/2)
		p.Boxes = append(p.Boxes, drawnBox{b, x, y})
		p.Width, p.Height = max(p.Width, x+boxWidth+1), max(p.Height, y+boxHeight+1)
	}
	for i, a := range arrows {
		drawn := l.arrow(a, routes[i])
		p.Arrows = append(p.Arrows, drawn)
		p.Width = max(p.Width, drawn.X+labelWidth*len([]rune(drawn.Label)))
	}
	return p
}

func (l *layout) addSlot(layer int) int {
	for len(l.layers) <= layer {
		l.layers = append(l.layers, nil)
	}
	slot := len(l.layerOf)
	l.layers[layer] = append(l.layers[layer], slot)
	l.layerOf, l.middle = append(l.layerOf, layer), append(l.middle, 0)
	return slot
}

// order sorts the slots of each layer by the middle of those before them, then by those behind
// them, and again, which leaves few crossings.
func (l *layout) order() {
	for i := range l.layers {
		l.place(i)
	}
	sortBy := func(layer int, beside map[int][]int) {
		slices.SortStableFunc(l.layers[layer], func(a, b int) int {
			return cmp.Compare(l.meanOf(a, beside), l.meanOf(b, beside))
		})
		l.place(layer)
	}
	for range 2 {
		for i := range l.layers {
			sortBy(i, l.before)
		}
		for i := range l.layers {
			sortBy(len(l.layers)-1-i, l.after)
		}
	}
	lowest := 0
	for slot, middle := range l.middle {
		lowest = min(lowest, middle-l.breadth(slot)/2)
	}
	for slot := range l.middle {
		l.middle[slot] += 1 - lowest
	}
}

func (l *layout) meanOf(slot int, beside map[int][]int) float64 {
	if len(beside[slot]) == 0 {
		return float64(l.middle[slot])
	}
	sum := 0
	for _, other := range beside[slot] {
		sum += l.middle[other]
	}
	return float64(sum) / float64(len(beside[slot]))
}

// place puts the slots of a layer side by side, around 0.
func (l *layout) place(layer int) {
	all := 0
	for _, slot := range l.layers[layer] {
		all += l.breadth(slot) + boxGap
	}
	at := -(all - boxGap) / 2
	for _, slot := range l.layers[layer] {
		l.middle[slot] = at + l.breadth(slot)/2
		at += l.breadth(slot) + boxGap
	}
}

// breadth is how much a slot takes of its layer, and depth how much of the way from layer to layer.
func (l *layout) breadth(slot int) int {
	switch {
	case slot >= l.boxes:
		return passWidth
	case l.across:
		return boxHeight
	}
	return boxWidth
}

func (l *layout) depth() int {
	if l.across {
		return boxWidth
	}
	return boxHeight
}

// start is where a slot begins, from layer to layer.
func (l *layout) start(slot int) int { return 1 + l.layerOf[slot]*(l.depth()+layerGap) }

// at turns directions into coordinates.
func (l *layout) at(along, cross int) (x, y int) {
	if l.across {
		return along, cross
	}
	return cross, along
}

func (l *layout) arrow(a boxArrow, route []int) drawnArrow {
	drawn := drawnArrow{Class: a.Class, Marker: a.Class, Label: a.Label}
	if a.Class != "bad" && a.Class != "done" {
		drawn.Marker = "rest"
	}
	var path strings.Builder
	add := func(letter string, points ...int) {
		path.WriteString(letter)
		for i := 0; i < len(points); i += 2 {
			x, y := l.at(points[i], points[i+1])
			fmt.Fprintf(&path, "%d %d ", x, y)
		}
	}
	if l.layerOf[a.From] >= l.layerOf[a.To] { // around
		from, to := l.start(a.From)+l.depth()/2, l.start(a.To)+l.depth()/2
		if a.From == a.To {
			from, to = from+12, to-12
		}
		side, end := l.middle[a.From]+l.breadth(a.From)/2, l.middle[a.To]+l.breadth(a.To)/2
		far := max(side, end) + aroundBox
		add("M", from, side)
		add("C", from, far, to, far, to, end+headLength)
		drawn.X, drawn.Y = l.at((from+to)/2, far-8)
	} else {
		end := l.start(route[0]) + l.depth()
		add("M", end, l.middle[route[0]])
		for i, slot := range route[1:] {
			from, start := l.middle[route[i]], l.start(slot)
			if slot == a.To {
				start -= headLength
			}
			half := (end + start) / 2
			add("C", half, from, half, l.middle[slot], start, l.middle[slot])
			if slot != a.To {
				end = start + l.depth()
				add("L", end, l.middle[slot])
			}
		}
		x, y := l.at(l.start(a.To)-layerGap/2, (l.middle[route[len(route)-2]]+l.middle[a.To])/2)
		drawn.X, drawn.Y = x+8, y+4
	}
	drawn.Path = strings.TrimSpace(path.String())
	return drawn
}

// Runes of a box's lines. The mark takes some of the second line's room.
const (
	nameLength  = 18
	belowLength = 16
)

// short cuts the middle out of a text that is longer than most runes, so that it fits into a box.
func short(text string, most int) string {
	text = plain(text)
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:7]) + "…" + string(runes[len(runes)-most+8:])
}
