/** Updates "3 min ago" while the page is open, and shows exact times in the zone of the browser. */
const [MINUTE, HOUR, DAY] = [60, 3600, 86_400]

function span(seconds) {
  if (seconds < MINUTE) return `${Math.floor(seconds)} s`
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h`
  return `${Math.floor(seconds / DAY)} d`
}

export function age(iso) {
  const seconds = Math.round((Date.now() - Date.parse(iso)) / 1000)
  if (Math.abs(seconds) < 10) return 'now'
  return seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`
}

const { timeZone: zone } = Intl.DateTimeFormat().resolvedOptions()
const form = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })
const show = (iso) => `${form.format(new Date(iso)).replace(',', '')} ${zone}`

/** A zone that the server's settings name stays; UTC becomes the browser's, and stands on hover. */
function localize(time) {
  const isExact = time.matches('.exact')
  const given = isExact ? time.textContent : time.title
  if (zone === 'UTC' || !given.endsWith(' UTC') || given.includes('\n')) return
  const local = show(time.dateTime)
  time.title = isExact ? given : `${local}\n${given}`
  if (isExact) time.textContent = local
  if (time.matches('.minute')) time.textContent = local.slice(time.matches('.hour') ? 11 : 0, 16)
}

function refresh() {
  for (const time of document.querySelectorAll('time[datetime]')) {
    localize(time)
    if (time.matches('.exact, .minute')) continue
    const text = age(time.dateTime)
    if (time.textContent !== text) time.textContent = text
  }
}

export function startAges() {
  refresh()
  setInterval(refresh, 10_000)
  document.addEventListener('htmx:afterSwap', refresh)
  document.addEventListener('flasher:rows', refresh)
}
