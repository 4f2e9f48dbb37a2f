/** The event stream of a page: by the worker that all pages share, or alone where there is none. */

/** A page that is hidden for longer follows nothing until it is shown. */
const HIDDEN_MS = 30_000
const REPORT_MS = 15_000
const EVENTS = ['machines-update', 'runs-update']
const MAX_ALONE = 2

/** What htmx takes for an event source. */
function createSource() {
  return Object.assign(new EventTarget(), {
    readyState: EventSource.CONNECTING,
    onopen: null,
    onerror: null,
    close() {},
  })
}

function open(source) {
  source.readyState = EventSource.OPEN
  source.onopen?.(new Event('open'))
}

function fail(source, state) {
  source.readyState = state
  source.onerror?.(new Event('error'))
}

function receive(source, { kind, data }) {
  if (source.readyState === EventSource.CLOSED) return
  if (kind === 'open') open(source)
  else if (kind === 'lost') fail(source, EventSource.CONNECTING)
  else if (kind === 'closed') {
    source.close()
    fail(source, EventSource.CLOSED)
  } else source.dispatchEvent(new MessageEvent(kind, { data }))
}

/** `isNew`: the page has nothing of its view yet. Throws where there are no shared workers. */
function createShared(source, view, failed) {
  const worker = new SharedWorker(new URL('./live-worker.js', import.meta.url), 'flasher-live')
  const { port } = worker
  let timer = null
  worker.addEventListener('error', failed)
  const report = (isNew) => port.postMessage({ view, isNew })
  port.addEventListener('message', ({ data }) => receive(source, data))
  port.start()
  return {
    graceMs: HIDDEN_MS,
    follow() {
      clearInterval(timer)
      timer = setInterval(() => report(false), REPORT_MS)
      report(true)
    },
    leave() {
      clearInterval(timer)
      port.postMessage({ view: null })
    },
  }
}

/** Of pages without a worker the two that were shown last have a stream each. */
function createAlone(source, view) {
  const channel = globalThis.BroadcastChannel && new BroadcastChannel('flasher-live')
  const id = Math.random()
  const newer = new Set()
  let stream = null

  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is no window's
  const say = (message) => channel?.postMessage(message)

  function leave() {
    if (stream === null) return
    stream.close()
    stream = null
    say({ closed: id })
  }
  function follow() {
    if (stream !== null) return
    newer.clear()
    say({ opened: id })
    stream = new EventSource(`/events/machines?${view}`)
    for (const kind of EVENTS) {
      stream.addEventListener(kind, ({ data }) => receive(source, { kind, data }))
    }
    stream.addEventListener('open', () => receive(source, { kind: 'open' }))
    stream.addEventListener('error', ({ target }) => {
      const isOver = target.readyState === EventSource.CLOSED
      if (isOver) leave()
      receive(source, { kind: isOver ? 'closed' : 'lost' })
    })
  }
  channel?.addEventListener('message', ({ data: { opened, closed } }) => {
    if (opened !== undefined) newer.add(opened)
    newer.delete(closed)
    if (stream === null || newer.size < MAX_ALONE) return
    leave()
    receive(source, { kind: 'lost' })
  })
  window.addEventListener('focus', () => {
    if (source.readyState !== EventSource.CLOSED) follow()
  })
  return { graceMs: 0, follow, leave }
}

/** Not every browser has shared workers, or allows them. */
function createLane(source, view, failed) {
  try {
    return createShared(source, view, failed)
  } catch {
    return createAlone(source, view)
  }
}

/** A page that was opened in the background follows from the moment at which it is shown. */
export function openStream(url) {
  const source = createSource()
  const view = new URL(url, location).search.slice(1)
  let lane = createLane(source, view, () => {
    lane.leave()
    lane = createAlone(source, view)
    attend()
  })
  const until = new AbortController()
  const listen = (target, name, handle) =>
    target.addEventListener(name, handle, { signal: until.signal })
  let timer = null

  function attend() {
    clearTimeout(timer)
    if (source.readyState === EventSource.CLOSED) return
    if (document.hidden) timer = setTimeout(() => lane.leave(), lane.graceMs)
    else lane.follow()
  }
  source.close = () => {
    source.readyState = EventSource.CLOSED
    clearTimeout(timer)
    until.abort()
    lane.leave()
  }
  listen(document, 'visibilitychange', attend)
  listen(window, 'pagehide', () => lane.leave())
  listen(window, 'pageshow', ({ persisted }) => persisted && attend())
  if (!document.hidden) lane.follow()
  return source
}
