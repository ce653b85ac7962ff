#!/bin/bash
# Copies ConfigMaps with a label into a second one each. bash, curl and jq; one process, which lists, watches and writes in turn.
#
#   KUBECONFIG=… bash copies.sh            (DEFECT=NAME puts one in)

set -u -o pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

field() { sed -n "s/^ *-\{0,1\} *$1: *//p" "$KUBECONFIG" | head -1 | tr -d '"'"'"; }
server=$(field server)
token_file=$(field tokenFile)
token=$(field token)
curl_options=(--silent --show-error --noproxy '*' --user-agent copies/1.0 --connect-timeout 5)
authority=$(field certificate-authority-data)
if [ -n "$authority" ]; then
  base64 --decode <<<"$authority" >"$work/ca.crt"
  curl_options+=(--cacert "$work/ca.crt")
fi

maps=/api/v1/configmaps
revision=
pause=500 # milliseconds
after=0   # seconds that the server has asked for

request() { # request NAME METHOD PATH [curl options]: the answer is in $work/NAME; returns 1 if it failed, with the code in $code
  local name=$1 method=$2 path=$3 bearer=$token
  shift 3
  [ -n "$token_file" ] && bearer=$(<"$token_file")
  [ -n "$bearer" ] && set -- --header "Authorization: Bearer $bearer" "$@"
  code=000 after=0
  code=$(curl "${curl_options[@]}" --max-time 12 --request "$method" --dump-header "$work/head" --output "$work/$name" \
    --write-out '%{http_code}' "$@" "$server$path" 2>>"$work/errors") || code=000
  [ "$code" = 000 ] && [ "${DEFECT:-}" = stops ] && exit 5
  check_code
}

check_code() {
  case $code in 2??) return 0 ;; esac
  after=$(tr -d '\r' <"$work/head" 2>/dev/null | sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]*\)$/\1/p' | tail -1)
  after=${after:-0}
  return 1
}

rest() { # pauses for longer each time, at least for as long as the server wants
  local wanted=$((pause * 6 / 10 + RANDOM % pause))
  [ "${DEFECT:-}" = even ] && wanted=1500
  [ $((after * 1000 + 100)) -gt $wanted ] && [ "$after" -gt 0 ] && wanted=$((after * 1000 + 100))
  sleep "$((wanted / 1000)).$(printf %03d $((wanted % 1000)))"
  after=0
  pause=$((pause * 2 > 30000 ? 30000 : pause * 2))
}

declare -A data=() uids=() failed=()

settle() { # settle NAMESPACE/NAME: makes the copy like its source; returns 1 if it has to be tried again
  local key=$1 namespace=${1%/*} name=${1#*/} body
  [ -n "${uids[$key]:-}" ] || return 0
  local path=/api/v1/namespaces/$namespace/configmaps
  if request there GET "$path/$name-copy"; then
    [ "$(jq -r '[.metadata.ownerReferences[]?.uid] | index("'"${uids[$key]}"'") != null' "$work/there")" = true ] || return 1
    jq --compact-output --argjson data "${data[$key]}" 'select((.data // {}) != $data) | .data = $data' "$work/there" >"$work/body"
    [ -s "$work/body" ] || return 0
    request answer PUT "$path/$name-copy" --header 'Content-Type: application/json' --data-binary @"$work/body"
    return
  fi
  [ "$code" = 404 ] || return 1
  jq --null-input --compact-output --argjson data "${data[$key]}" --arg name "$name" --arg uid "${uids[$key]}" '{
    metadata: {name: ($name + "-copy"), ownerReferences: [{apiVersion: "v1", kind: "ConfigMap", name: $name, uid: $uid, controller: true}]},
    data: $data}' >"$work/body"
  request answer POST "$path" --header 'Content-Type: application/json' --data-binary @"$work/body"
}

attempt() {
  if settle "$1" || [ "$code" = 404 ]; then
    unset "failed[$1]"
  else
    failed[$1]=1
    [ "${DEFECT:-}" = gives-up ] && unset "failed[$1]"
  fi
  return 0
}

forget() { unset "data[$1]" "uids[$1]" "failed[$1]"; }

remember() { # remember LINE: an object as [key, uid, data, deleted?]
  local key
  key=$(jq -r '.[0]' <<<"$1")
  if [ "$(jq -r '.[3]' <<<"$1")" = true ]; then forget "$key"; return 0; fi
  uids[$key]=$(jq -r '.[1]' <<<"$1")
  data[$key]=$(jq -c '.[2]' <<<"$1")
  attempt "$key"
}

short='[.metadata.namespace + "/" + .metadata.name, .metadata.uid, (.data // {}), (.metadata.deletionTimestamp != null)]'

list() {
  local next= seen=" " newest
  : >"$work/all"
  while :; do
    local query="labelSelector=mirror%3Dyes&limit=100"
    [ -n "$next" ] && query+="&continue=$(jq -rn --arg next "$next" '$next | @uri')"
    request page GET "$maps?$query" || return 1
    jq -c ".items[] | $short" "$work/page" >>"$work/all" || return 1
    next=$(jq -r '.metadata.continue // ""' "$work/page")
    newest=$(jq -r .metadata.resourceVersion "$work/page")
    [ -n "$next" ] || break
  done
  revision=$newest
  while IFS= read -r line; do
    seen+="$(jq -r '.[0]' <<<"$line") "
    remember "$line"
  done <"$work/all"
  for key in "${!uids[@]}"; do
    [[ $seen == *" $key "* ]] || forget "$key"
  done
}

watch() { # returns 0 if the watch has ended normally after it was open for some time, or has delivered something
  local bearer=$token begun=$SECONDS came=0 line kind
  [ -n "$token_file" ] && bearer=$(<"$token_file")
  local query="watch=1&allowWatchBookmarks=true&labelSelector=mirror%3Dyes&timeoutSeconds=$((200 + RANDOM % 100))"
  : >"$work/head"
  coproc stream { exec curl "${curl_options[@]}" --no-buffer --speed-limit 1 --speed-time 13 --dump-header "$work/head" \
    ${bearer:+--header "Authorization: Bearer $bearer"} "$server$maps?$query&resourceVersion=$revision" 2>>"$work/errors"; }
  local input process=$stream_PID
  exec {input}<&"${stream[0]}" # bash closes its own one when curl ends, although there may be lines left
  while IFS= read -r line <&"$input" || { [ "${DEFECT:-}" = half-lines ] && [ -n "$line" ]; }; do
    kind=$(jq -r '.type // ("STATUS" + (.code // 500 | tostring))' <<<"$line" 2>/dev/null || echo BROKEN)
    case $kind in
      ADDED | MODIFIED | DELETED)
        came=1
        line=$(jq -c "if .type == \"DELETED\" then .object | $short | .[3] = true else .object | $short end + [.object.metadata.resourceVersion]" <<<"$line")
        remember "$line"
        revision=$(jq -r '.[4]' <<<"$line")
        ;;
      BOOKMARK) revision=$(jq -r .object.metadata.resourceVersion <<<"$line") ;;
      ERROR | STATUS* | BROKEN)
        case $(jq -r '.object.code // .code // 500' <<<"$line" 2>/dev/null) in 410 | 504) revision= ;; esac
        came=-1
        [ "${DEFECT:-}" = half-lines ] && [ "$kind" = BROKEN ] && exit 4
        ;;
    esac
    while [ ${#failed[@]} -gt 0 ] && ! IFS= read -r -t 0 <&"$input"; do
      rest
      for key in "${!failed[@]}"; do attempt "$key"; done
    done
  done
  exec {input}<&-
  kill "$process" 2>/dev/null
  wait "$process" 2>/dev/null
  code=$(sed -n 's/^HTTP[^ ]* \([0-9]*\).*/\1/p' "$work/head" | tail -1)
  check_code || return 1
  [ $came -lt 0 ] && return 1
  [ $came -gt 0 ] || [ $((SECONDS - begun)) -gt 1 ] && return 0
  revision=
  return 1
}

while :; do
  if { [ -n "$revision" ] || list; } && { [ ${#failed[@]} -eq 0 ] || for key in "${!failed[@]}"; do attempt "$key"; done; } && watch; then
    pause=500
  else
    rest
  fi
  [ ${#failed[@]} -gt 0 ] && { for key in "${!failed[@]}"; do attempt "$key"; done; [ ${#failed[@]} -gt 0 ] && rest; }
done
