{{- $pages := slice -}}
{{- range (site.RegularPages | append site.Home) -}}
{{- $headings := slice -}}
{{- range findRE `(?s)<h[23] id="[^"]+">.*?</h[23]>` .Content -}}
{{- $headings = $headings | append (dict "id" (replaceRE `(?s)^<h[23] id="([^"]+)">.*$` "$1" .) "text" (plainify . | htmlUnescape)) -}}
{{- end -}}
{{- $pages = $pages | append (dict "url" (cond .IsHome "index.html" (strings.TrimPrefix "/" .RelPermalink)) "title" (partial "title.html" .) "headings" $headings "text" (.Plain | htmlUnescape)) -}}
{{- end -}}
searchIndexLoaded({{ $pages | jsonify }});
