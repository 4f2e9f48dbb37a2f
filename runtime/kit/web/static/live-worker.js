/** A shared worker: one event stream for all pages of a browser, which allows six connections to a site. */
const PATH = '/events/machines'
const EVENTS = ['machines-update', 'runs-update']
/** What the server takes in one request. */
const MAX_VIEWS = 16
const MAX_CHARACTERS = 8000
/** Pages report themselves far more often; one that has crashed does not. */
const SILENT_MS = 45_000
const SWEEP_MS = 10_000
const RETRY_MS = 1000
/** A page that is left for the next one leads to another view at once. */
const LEAVE_MS = 2000

/** By port: the view of a page that is shown, and when it was heard of. */
const pages = new Map()
/** The stream that pages follow, and the one that will replace it once it is open. */
let current = null
let next = null
let timer = null
let failedAt = -Infinity

const render = (views) => views.map((view) => `view=${encodeURIComponent(view)}`).join('&')

/** Of the pages that were shown last, as many as fit. */
function listViews() {
  const views = [...new Set([...pages.values()].map(({ view }) => view))].slice(-MAX_VIEWS)
  while (views.length > 1 && render(views).length > MAX_CHARACTERS) views.shift()
  return views
}

function send(view, message) {
  for (const [port, page] of pages) if (page.view === view) port.postMessage(message)
}

function schedule(wait) {
  clearTimeout(timer)
  timer = setTimeout(connect, Math.max(wait, failedAt + RETRY_MS - performance.now()))
}

function close() {
  current?.source.close()
  next?.source.close()
  current = next = null
}

function hasViews(made, views) {
  return made?.views.length === views.length && views.every((view) => made.views.includes(view))
}

function connect() {
  const views = listViews()
  if (views.length === 0) close()
  else if (!hasViews(next ?? current, views)) {
    next?.source.close()
    next = open(views)
  }
}

function open(views) {
  const made = { views, latest: new Map(), source: new EventSource(`${PATH}?${render(views)}`) }
  for (const [number, view] of views.entries()) {
    for (const kind of EVENTS) {
      made.source.addEventListener(`${kind}.${number}`, ({ data }) => {
        made.latest.set(`${kind} ${view}`, data)
        send(view, { kind, data })
      })
    }
  }
  made.source.addEventListener('open', () => onOpen(made))
  made.source.addEventListener('error', () => onError(made))
  return made
}

function onOpen(made) {
  if (made === next) {
    current?.source.close()
    current = made
    next = null
  }
  for (const view of made.views) send(view, { kind: 'open' })
}

function onError(made) {
  // The browser tries again by itself, until an answer is no stream: the session has ended, say.
  const isOver = made.source.readyState === EventSource.CLOSED
  if (isOver) {
    failedAt = performance.now()
    if (made === next) next = null
    else current = null
  }
  for (const view of made.views) {
    if (made === current || !current?.views.includes(view)) {
      send(view, { kind: isOver ? 'closed' : 'lost' })
    }
  }
}

/** Whether another page has the same view: then this one gets what it was last. */
function welcome(port, view) {
  if (current?.source.readyState !== EventSource.OPEN || !current.views.includes(view)) return false
  port.postMessage({ kind: 'open' })
  for (const kind of EVENTS) {
    const data = current.latest.get(`${kind} ${view}`)
    if (data !== undefined) port.postMessage({ kind, data })
  }
  return true
}

/** `view` null: the page is hidden, or left. */
function onMessage(port, { view, isNew }) {
  if (view === null) {
    if (pages.delete(port)) schedule(LEAVE_MS)
    return
  }
  const isKnown = !isNew && pages.get(port)?.view === view
  pages.set(port, { view, at: performance.now() })
  if (!isKnown && !welcome(port, view)) schedule(0)
}

function sweep() {
  const now = performance.now()
  const silent = [...pages].filter(([, { at }]) => now - at > SILENT_MS)
  for (const [port] of silent) pages.delete(port)
  if (silent.length > 0) schedule(0)
}

globalThis.addEventListener('connect', ({ ports: [port] }) => {
  port.addEventListener('message', ({ data }) => onMessage(port, data))
  port.start()
})
setInterval(sweep, SWEEP_MS)
