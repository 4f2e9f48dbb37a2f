/** Updates "3 min ago" while the page is open. */
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

function refresh() {
  for (const time of document.querySelectorAll('time[datetime]')) {
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
