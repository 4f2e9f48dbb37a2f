/** Live rows: input, selection and reading position are kept, and a lost connection is shown. */
import { age } from './ages.js'
import { refreshParts } from './news.js'
import { hold, startHolding } from './holding.js'
import { openStream } from './streams.js'

const SILENT_MS = 2000

let lostAt = null
let latest = null
let bars = ''

/** Elements that a person is using are not replaced, save for lists that follow what machines report. */
function isInUse(node, fresh) {
  if (!(node instanceof Element)) return false
  if (node.matches('.pick input') && node.value === fresh.value) return true
  if (node.matches('.follows:has([type=text]:focus), [data-filter]:not(:placeholder-shown)')) {
    return true
  }
  const isEdited = (node.form ?? node).closest('form[data-dirty]') !== null
  const follows = node.closest('.follows') !== null || node.querySelector('.follows') !== null
  if (isEdited && !follows) return true
  return node === document.activeElement && node.matches('input, select, textarea')
}

/** What was selected since the news was requested stays selected, and the form stays an edited one. */
function keepEntries(old, fresh) {
  if (!(fresh instanceof Element) || old.closest('form[data-dirty]') === null) return
  if (old.matches('form')) fresh.setAttribute('data-dirty', '')
  if (old.matches('[type=radio]') && old.value === fresh.value) {
    fresh.toggleAttribute('checked', old.checked)
  }
}

function keepWhatIsInUse() {
  const { callbacks } = globalThis.Idiomorph.defaults
  callbacks.beforeNodeMorphed = (old, fresh) => {
    if (isInUse(old, fresh)) return false
    if (old instanceof Element) keepEntries(old, fresh)
    if (old instanceof HTMLDetailsElement && fresh instanceof Element) {
      fresh.toggleAttribute('open', old.open)
    }
    return true
  }
}

/** Whether moving rows would disturb somebody. */
const isBusy = (rows) =>
  rows.matches(':hover') ||
  rows.contains(document.activeElement) ||
  rows.querySelector('.pick :checked') !== null

/** Updates the rows that are shown without changing their order. */
function updateInPlace(rows, data) {
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
  const { one, other } = chip.dataset
  const isOne = new Intl.PluralRules(document.documentElement.lang).select(count) === 'one'
  chip.textContent = (isOne ? one : other).replace('{count}', String(count))
}

function onRows(event) {
  const rows = event.target
  if (rows.id !== 'rows') return
  latest = event.detail.data
  if (isBusy(rows)) {
    event.preventDefault()
    showChip(updateInPlace(rows, latest))
  } else {
    showChip(0)
  }
}

/** Updates the progress bars and nothing else. */
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

function showSilence() {
  const banner = document.querySelector('#stale')
  if (banner === null) return
  banner.hidden = lostAt === null || Date.now() - lostAt < SILENT_MS
  hold(banner.hidden ? null : banner)
  if (banner.hidden) return
  const at = new Date(lostAt)
  banner.textContent = banner.dataset.text
    .replace('{time}', at.toLocaleTimeString())
    .replace('{age}', age(at.toISOString()))
}

export function startLive() {
  if (globalThis.htmx === undefined || globalThis.Idiomorph === undefined) return
  keepWhatIsInUse()
  startHolding()
  globalThis.htmx.createEventSource = openStream
  document.addEventListener('htmx:sseOpen', (event) => {
    const { source } = event.detail
    source.addEventListener('machines-update', refreshParts)
    source.addEventListener('runs-update', onBars)
    lostAt = null
    showSilence()
  })
  document.addEventListener('htmx:sseError', () => {
    lostAt ??= Date.now()
    setTimeout(showSilence, SILENT_MS + 100)
  })
  setInterval(showSilence, 10_000)
  // A part that was requested before the newest bars arrived is older than they are.
  document.addEventListener('htmx:afterSwap', showBars)
  document.addEventListener('htmx:sseBeforeMessage', onRows)
  document.addEventListener('htmx:sseMessage', () => {
    document.dispatchEvent(new Event('flasher:rows'))
  })
  document.querySelector('#arrived')?.addEventListener('click', applyLatest)
}
