/** The wall of machines: its tiles follow their states, and the arrow keys move between them. */

const ARROWS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
}

/** The tiles by their MACs, as they are in the page. */
function listTiles(wall) {
  return new Map([...wall.querySelectorAll('.t input')].map((input) => [input.value, input]))
}

/** The next news of runs fills the bar of a machine that has begun (`live.js`). */
function showBar(tile, mac, state) {
  const bar = tile.querySelector('.bar')
  if (state !== 'running') bar?.remove()
  else if (bar === null) {
    const fresh = document.createElement('span')
    fresh.id = `b-${mac.replaceAll(':', '-')}`
    fresh.className = 'bar run'
    tile.append(fresh)
  }
}

/** A tile that has its state already is left alone. */
function showState(input, state, word) {
  const tile = input.parentElement
  const label = input.getAttribute('aria-label')
  showBar(tile, input.value, state)
  const next = `${label.slice(0, label.lastIndexOf(': '))}: ${word}`
  if (next === label && tile.classList.contains(state)) return
  tile.className = `t pick ${state}`
  tile.querySelector('use').setAttribute('href', `#i-${state}`)
  input.setAttribute('aria-label', next)
}

/** Tiles that come, go or move need the page again; those that are selected stay so for that long. */
async function refresh(wall) {
  const answer = await fetch(wall.dataset.states, { headers: { accept: 'application/json' } })
  if (!answer.ok) return
  const { shape, states } = await answer.json()
  const isBusy = wall.querySelector(':checked') !== null || document.querySelector('dialog[open]')
  if (shape !== wall.dataset.shape && !isBusy) {
    location.reload()
    return
  }
  const tiles = listTiles(wall)
  for (const [mac, state, word] of states) {
    const input = tiles.get(mac)
    if (input !== undefined) showState(input, state, word)
  }
}

function middleOf(input) {
  const { left, top, width, height } = input.parentElement.getBoundingClientRect()
  return [left + width / 2, top + height / 2]
}

/** The tile that lies nearest in a direction: across it counts twice. */
function findNext(wall, from, [right, down]) {
  const [x, y] = middleOf(from)
  let [best, least] = [null, Infinity]
  for (const each of wall.querySelectorAll('.t input')) {
    const [dx, dy] = middleOf(each).map((at, axis) => at - (axis === 0 ? x : y))
    const along = dx * right + dy * down
    const distance = along + 2 * Math.abs(right === 0 ? dx : dy)
    if (along > 2 && distance < least) [best, least] = [each, distance]
  }
  return best
}

function onKey(wall, event) {
  const input = event.target
  if (!input.matches?.('.wall .t input')) return
  if (event.key === 'Enter') location.assign(`${wall.dataset.machine}/${input.value}`)
  else if (ARROWS[event.key]) findNext(wall, input, ARROWS[event.key])?.focus()
  else return
  event.preventDefault()
}

/** What a tile is called is shown while the mouse is over it. */
function onOver({ target }) {
  const tile = target.closest('.t.pick')
  if (tile !== null) tile.title = tile.querySelector('input').getAttribute('aria-label')
}

export function startWall() {
  const wall = document.querySelector('.wall')
  if (wall === null) return
  wall.addEventListener('flasher:news', () => refresh(wall).catch(() => undefined))
  wall.addEventListener('keydown', (event) => onKey(wall, event))
  wall.addEventListener('mouseover', onOver)
  wall.addEventListener('dblclick', ({ target }) => {
    const input = target.closest('.t.pick')?.querySelector('input')
    if (input) location.assign(`${wall.dataset.machine}/${input.value}`)
  })
}
