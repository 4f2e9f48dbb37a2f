/** Live rows: nothing that is being typed, picked or read is taken away, and silence is told. */
import { age } from './ages.js'
import { tellNews } from './news.js'

const HIDDEN_MS = 30_000
const SILENT_MS = 2000

let source = null
let lostAt = null
let latest = null
let bars = ''

/** What a person has in hand stays as it is. */
function isInHand(node) {
  if (!(node instanceof Element)) return false
  if (node.matches('.pick input, form[data-dirty]')) return true
  return node === document.activeElement && node.matches('input, select, textarea')
}

function keepWhatIsInHand() {
  const { callbacks } = globalThis.Idiomorph.defaults
  callbacks.beforeNodeMorphed = (old, fresh) => {
    if (isInHand(old)) return false
    if (old instanceof HTMLDetailsElement && fresh instanceof Element) {
      fresh.toggleAttribute('open', old.open)
    }
    return true
  }
}

/** Whether rows that jump would be in somebody's way. */
const isBusy = (rows) =>
  rows.matches(':hover') ||
  rows.contains(document.activeElement) ||
  rows.querySelector('.pick :checked') !== null

/** The newest state of the rows that are shown, in the order in which they stand. */
function settle(rows, data) {
  const template = document.createElement('template')
  template.innerHTML = data
  const fresh = new Map([...template.content.children].map((row) => [row.id, row]))
  const here = [...rows.children].map(({ id }) => id)
  const kept = here.flatMap((id) => fresh.get(id) ?? [])
  const arrived = [...fresh.keys()].filter((id) => !here.includes(id)).length
  globalThis.Idiomorph.morph(rows, kept, { morphStyle: 'innerHTML' })
  document.dispatchEvent(new Event('flasher:rows'))
  return arrived
}

function showChip(count) {
  const chip = document.querySelector('#arrived')
  if (chip === null) return
  chip.hidden = count === 0
  chip.textContent = count === 1 ? '1 new machine' : `${count} new machines`
}

function onRows(event) {
  const rows = event.target
  if (rows.id !== 'rows') return
  latest = event.detail.data
  if (isBusy(rows)) {
    event.preventDefault()
    showChip(settle(rows, latest))
  } else {
    showChip(0)
  }
}

/** How far each run is; whatever else stands around it stays. */
function showBars() {
  const template = document.createElement('template')
  template.innerHTML = bars
  for (const fresh of template.content.querySelectorAll('.bar')) {
    const bar = document.getElementById(fresh.id)
    if (bar === null || bar.outerHTML === fresh.outerHTML) continue
    globalThis.Idiomorph.morph(bar, fresh, { morphStyle: 'outerHTML' })
  }
}

function onBars(event) {
  bars = event.data
  showBars()
}

function applyLatest() {
  const rows = document.querySelector('#rows')
  if (rows === null || latest === null) return
  globalThis.Idiomorph.morph(rows, latest, { morphStyle: 'innerHTML' })
  document.dispatchEvent(new Event('flasher:rows'))
  showChip(0)
}

function tellSilence() {
  const banner = document.querySelector('#stale')
  if (banner === null) return
  banner.hidden = lostAt === null || Date.now() - lostAt < SILENT_MS
  if (banner.hidden) return
  const at = new Date(lostAt)
  banner.textContent = `No news from the server since ${at.toLocaleTimeString()} (${age(at.toISOString())}): what is shown may be old. Trying again; if it lasts, load the page anew.`
}

/** A tab that nobody sees holds no connection: browsers have six for all of them. */
function followVisibility() {
  let timer = null
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(() => source?.close(), HIDDEN_MS)
    else if (source?.readyState === EventSource.CLOSED) source.onerror(new Event('resume'))
  })
}

export function startLive() {
  if (globalThis.htmx === undefined || globalThis.Idiomorph === undefined) return
  keepWhatIsInHand()
  document.addEventListener('htmx:sseOpen', (event) => {
    source = event.detail.source
    source.addEventListener('machines-update', tellNews)
    source.addEventListener('runs-update', onBars)
    lostAt = null
    tellSilence()
  })
  document.addEventListener('htmx:sseError', () => {
    lostAt ??= Date.now()
    setTimeout(tellSilence, SILENT_MS + 100)
  })
  setInterval(tellSilence, 10_000)
  // What was asked for before the newest bars came says less than they do.
  document.addEventListener('htmx:afterSwap', showBars)
  document.addEventListener('htmx:sseBeforeMessage', onRows)
  document.addEventListener('htmx:sseMessage', () => {
    document.dispatchEvent(new Event('flasher:rows'))
  })
  document.querySelector('#arrived')?.addEventListener('click', applyLatest)
  followVisibility()
}
