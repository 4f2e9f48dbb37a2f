/** `pnpm bench:house [--against CHECKOUT] [--list NAME]`: the size of the house, and how many of its files a contact and a flash really run. */
import { readFileSync, globSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import {
  measureContact,
  measureFlash,
  measureStart,
  type Ran,
} from '#test/support/house/house-coverage.ts'
import { printable } from '#kit/foundation/printable.ts'

function readHouse(checkout: string) {
  const files = globSync('runtime/**/*.{ts,mjs}', { cwd: checkout })
  const texts = files.map((file) => readFileSync(join(checkout, file), 'utf8'))
  const lines = texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0)
  return { files: files.length, lines }
}

interface Figures {
  readonly house: ReturnType<typeof readHouse>
  readonly ran: Readonly<Record<string, Ran>>
}

/** Everything that is measured of a checkout. */
async function measure(checkout: string): Promise<Figures> {
  const ran = {
    'flasher --version': await measureStart(checkout, 'version'),
    "the wizard's first screen": await measureStart(checkout, 'wizard'),
    'a flash of an .img.zst': await measureFlash(checkout),
    'GET /pxe/{mac}': await measureContact(checkout, 'pxe'),
    'GET /pxe/{mac}/plan': await measureContact(checkout, 'plan'),
  }
  return { house: readHouse(checkout), ran }
}

function rowsOf({ house, ran }: Figures): readonly (readonly [string, string])[] {
  return [
    ['files of runtime/', String(house.files)],
    ['their lines', String(house.lines)],
    ...Object.entries(ran).flatMap(([name, { loaded, run }]): [string, string][] => [
      [`${name}: files loaded`, loaded === null ? '-' : String(loaded.length)],
      [`${name}: files that run`, String(run.length)],
    ]),
  ]
}

const { values } = parseArgs({ options: { against: { type: 'string' }, list: { type: 'string' } } })
const here = await measure(process.cwd())
if (values.list !== undefined) {
  const lists = Object.fromEntries(Object.entries(here.ran).map(([name, { run }]) => [name, run]))
  const list = lists[values.list]
  if (list === undefined) {
    throw new Error(`${printable(values.list)} is none of: ${Object.keys(lists).join(', ')}`)
  }
  console.log(list.join('\n'))
} else {
  const rows = rowsOf(here)
  const before =
    values.against === undefined ? null : rowsOf(await measure(resolve(values.against)))
  const head = before === null ? ['What', 'Here'] : ['What', 'Before', 'Here']
  const all = rows.map(([what, value], at) =>
    before === null ? [what, value] : [what, before[at]?.[1] ?? '', value],
  )
  for (const row of [head, head.map(() => '---'), ...all]) console.log(`| ${row.join(' | ')} |`)
}
