/** The bill of materials of a bundle of files (CycloneDX 1.6): the same bytes for the same contents. */
import { createHash } from 'node:crypto'
import type { Contents, DebianPackage, NpmPackage, Program } from './contents.ts'
import type { Sum } from './sums.ts'

interface SbomOptions {
  /** `flasher-netboot-pc-x86_64-v1.2.0` */
  readonly stem: string
  readonly version: string
  /** Seconds since 1970. */
  readonly epoch: number
  readonly files: readonly Sum[]
  readonly contents: Contents
}

/** Renders the document as JSON that ends with a line feed. */
export function renderSbom({ stem, version, epoch, files, contents }: SbomOptions): string {
  const within = contents.debian.filter((list) => list.within).flatMap(({ packages }) => packages)
  const makers = contents.debian.filter((list) => !list.within).flatMap(({ packages }) => packages)
  const components = [
    ...files.map(fileComponent),
    ...within.map(debianComponent),
    ...contents.npm.map(npmComponent),
    ...contents.programs.filter((program) => program.within).map(programComponent),
  ]
  const tools = [
    ...makers.map(debianComponent),
    ...contents.programs.filter((program) => !program.within).map(programComponent),
  ]
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([stem, epoch, components]))}`,
    version: 1,
    metadata: {
      timestamp: new Date(epoch * 1000).toISOString().replace('.000Z', 'Z'),
      tools: { components: unique(tools) },
      component: { type: 'firmware', 'bom-ref': stem, name: stem, version },
    },
    components: unique(components),
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

interface Component {
  readonly type: string
  readonly 'bom-ref': string
  readonly name: string
}

const fileComponent = ({ file, digest }: Sum) => ({
  type: 'file',
  'bom-ref': `file:${file}`,
  name: file,
  hashes: [{ alg: 'SHA-256', content: digest }],
})

function debianComponent({ name, version, architecture }: DebianPackage) {
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`
  return { type: 'library', 'bom-ref': purl, name, version, purl }
}

function npmComponent({ name, version, license }: NpmPackage) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const licenses = license === 'NOASSERTION' ? {} : { licenses: [{ expression: license }] }
  // Vulnerability databases list Node under its own name, not under that of the npm package.
  const cpe = name.startsWith('node-linux-') ? { cpe: cpeOfNode(version) } : {}
  return { type: 'library', 'bom-ref': purl, name, version, ...cpe, purl, ...licenses }
}

const cpeOfNode = (version: string) => `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`

function programComponent({ name, version }: Program) {
  const purl = `pkg:generic/${name}@${version}`
  const cpe = name === 'node' ? { cpe: cpeOfNode(version) } : {}
  return { type: 'application', 'bom-ref': purl, name, version, ...cpe, purl }
}

/** References must be unique in the format, and lists may overlap. */
function unique(components: readonly Component[]) {
  return [...new Map(components.map((one) => [one['bom-ref'], one])).values()]
}

/** A UUID derived from `text` (version 8 of RFC 9562). */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  const variant = '89ab'[Number.parseInt(hex.slice(16, 17), 16) % 4]
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-')
}
