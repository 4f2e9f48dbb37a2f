/** The wall: every machine as a small tile, rack by rack, on one screen; and the states that keep it up to date. */
import type { Run } from '#engine/inventory/rules/run.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { json, type Answer } from '#kit/web/answers/answers.ts'
import { etagOf } from '#kit/web/answers/rules/etag.ts'
import { icon } from '#kit/web/ui/elements.ts'
import { address, attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { ListQuery } from '#kit/web/ui/search.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { renderBar } from '#server/pages/machines/run-bar.ts'
import { MACHINES_PATH } from '#server/pages/machines/machines-list.ts'
import { groupByRack, type Rack, type RackSlot } from '#fleet/machine/rules/rack.ts'
import type { Machine } from '#server/current/rules/machine.ts'
import type { StateView } from '#server/current/rules/state.ts'
import { nameOf } from '../view/machine-view.ts'
import type { CurrentContext } from '../view/page-context.ts'

const t = PAGES.machines.wall

const STATES_PATH = '/ui/machines/wall'
/** At 1920 by 1080 pixels. */
const MAX_TILES = 1000

export const WALL_PAGES = [pageAt(STATES_PATH, sendStates)]

interface WallTile {
  readonly machine: Machine
  readonly labels: readonly string[]
  readonly view: StateView
  readonly run: Run | null
}

/** `shape` changes when tiles come, go or move. */
interface Wall {
  readonly racks: readonly Rack<WallTile>[]
  readonly tiles: readonly WallTile[]
  readonly shape: string
}

/** By name, so that no tile moves when a state changes. */
function findMachines(
  { site, query }: CurrentContext,
  all: readonly Machine[],
): readonly Machine[] {
  const search = new URLSearchParams(query)
  search.set('sort', 'name')
  return site.views.match(all, search)
}

function readWall(context: CurrentContext, found: readonly Machine[]): Wall {
  const tiles = found.slice(0, MAX_TILES).map((machine) => {
    const { view, run } = context.view(machine)
    return { machine, labels: machine.labels, view, run }
  })
  const racks = groupByRack(tiles)
  const places = racks.map(({ label, slots }) => [
    label,
    slots.map(({ number, row }) => [number, row?.machine.mac, row?.machine.name]),
  ])
  const shape = etagOf(JSON.stringify(places))
  return { racks, tiles, shape }
}

/** A few bytes a machine: `wall.js` changes the tiles that differ. */
async function sendStates(context: CurrentContext): Promise<Answer> {
  const all = await context.site.machines.list()
  const { tiles, shape } = readWall(context, findMachines(context, all))
  const states = tiles.map(({ machine, view }) => [machine.mac, view.state, wordOf(view)])
  return json({ shape, states })
}

const wordOf = ({ state, word }: StateView): string => word ?? PAGES.frame.states[state]

export function renderWall(
  context: CurrentContext,
  all: readonly Machine[],
  query: ListQuery,
): Html {
  const found = findMachines(context, all)
  const { racks, shape } = readWall(context, found)
  const { q, filter } = query
  return html`${
      found.length > MAX_TILES
        ? html`<p class="dim">${fill(t.tooMany, { most: MAX_TILES, found: found.length })}</p>`
        : null
    }
    <div
      class="wall"
      id="rows"
      ${attributes({
        'data-every': 1000,
        'data-states': address(STATES_PATH, { q, filter }),
        'data-shape': shape,
        'data-machine': MACHINES_PATH,
      })}
    >
      ${racks.map(renderRack)}
    </div>`
}

const renderRack = ({ label, slots }: Rack<WallTile>): Html =>
  html`<section class="rack${widthOf(slots.length)}">
    <h2>
      ${label === null ? t.noRack : html`<a href="${address(MACHINES_PATH, { q: `label:"${label}"`, view: 'wall' })}">${label}</a>`}
    </h2>
    <div>${slots.map(renderSlot)}</div>
  </section>`

/** Racks of many slots are turned: always, or in narrow windows only. */
const widthOf = (slots: number): string => (slots > 100 ? ' loose' : slots > 40 ? ' long' : '')

/** The number, else the end of the MAC. */
function renderSlot({ number, row }: RackSlot<WallTile>): Content {
  if (row === null) return html`<span class="t free" title="${t.free}">${number}</span>`
  const { machine, view, run } = row
  const name = nameOf(machine)
  const about = number === null ? name : fill(t.inSlot, { name, slot: number })
  return html`<label class="t pick ${view.state}"
    ><input
      type="checkbox"
      name="macs"
      value="${machine.mac}"
      aria-label="${fill(t.tile, { name: about, state: wordOf(view) })}"
    />${icon(view.state)}${number ?? html`<small>${machine.mac.slice(-5).replace(':', '')}</small>`}${run === null ? null : renderBar(run)}</label
  >`
}
