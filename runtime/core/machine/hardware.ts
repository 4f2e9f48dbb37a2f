/** What a hardware tree (`lshw -json`) says of a machine, in a few lines; all of it is hostile. */
import { parseJson } from '../foundation/json-reader.ts'
import { isRecord } from '../foundation/shape.ts'
import { printable } from '../foundation/printable.ts'

export interface Hardware {
  readonly vendor: string | null
  readonly model: string | null
  readonly serial: string | null
  /** One for each socket. */
  readonly processors: readonly string[]
  readonly cores: number | null
  readonly memoryBytes: number | null
  /** Product, with name and MAC as far as they are known. */
  readonly networks: readonly string[]
  readonly firmware: string | null
}

type Node = Readonly<Record<string, unknown>>

/** Trees are small; what goes on and on is cut. */
const MAX_NODES = 5000
const MAX_CHARACTERS = 120
const MAX_OF_A_KIND = 8

/** Null: the text is no such tree. */
export function parseHardware(json: string): Hardware | null {
  const nodes = flatten(parseJson(json))
  const system = nodes[0]
  if (system === undefined) return null
  const processors = nodes.filter((node) => isClass(node, 'processor') && !isOff(node))
  const memory = nodes.find((node) => idOf(node) === 'memory' && isClass(node, 'memory'))
  const firmware = nodes.find((node) => idOf(node) === 'firmware')
  return {
    vendor: textOf(system, 'vendor'),
    model: textOf(system, 'product'),
    serial: textOf(system, 'serial'),
    processors: listTexts(processors.map((node) => textOf(node, 'product'))),
    cores: sum(processors.map(coresOf)),
    memoryBytes: memory === undefined ? null : numberOf(memory, 'size'),
    networks: listTexts(nodes.filter((node) => isClass(node, 'network')).map(renderNetwork)),
    firmware: firmware === undefined ? null : joinTexts(firmware, ['vendor', 'version', 'date']),
  }
}

function flatten(top: unknown): readonly Node[] {
  const found: Node[] = []
  const queue: unknown[] = Array.isArray(top) ? top.slice(0, MAX_NODES) : [top]
  for (const node of queue) {
    if (found.length >= MAX_NODES) break
    if (!isRecord(node)) continue
    found.push(node)
    const { children } = node
    if (Array.isArray(children)) queue.push(...children.slice(0, MAX_NODES))
  }
  return found
}

const isClass = (node: Node, name: string) => node['class'] === name
const idOf = ({ id }: Node) => (typeof id === 'string' ? id.split(':', 1)[0] : '')
const isOff = (node: Node) => node['disabled'] === true

function textOf(node: Node, key: string): string | null {
  const value = node[key]
  if (typeof value !== 'string' || value.trim() === '') return null
  return printable(value.trim().slice(0, MAX_CHARACTERS))
}

function numberOf(node: Node, key: string): number | null {
  const value = node[key]
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : null
}

function coresOf({ configuration }: Node): number | null {
  const cores = isRecord(configuration) ? configuration['cores'] : null
  const count = Number(cores)
  return typeof cores === 'string' && Number.isInteger(count) && count > 0 ? count : null
}

const sum = (numbers: readonly (number | null)[]): number | null => {
  const known = numbers.filter((number) => number !== null)
  return known.length === 0 ? null : known.reduce((a, b) => a + b, 0)
}

function renderNetwork(node: Node): string | null {
  const { logicalname } = node
  const name = Array.isArray(logicalname) ? logicalname[0] : logicalname
  const address = joinTexts({ name, serial: node['serial'] }, ['name', 'serial'])
  const product = textOf(node, 'product') ?? textOf(node, 'description')
  if (product === null) return address
  return address === null ? product : `${product} (${address})`
}

const joinTexts = (node: Node, keys: readonly string[]): string | null =>
  keys
    .map((key) => textOf(node, key))
    .filter((text) => text !== null)
    .join(' ') || null

const listTexts = (texts: readonly (string | null)[]): readonly string[] =>
  texts.filter((text) => text !== null).slice(0, MAX_OF_A_KIND)
