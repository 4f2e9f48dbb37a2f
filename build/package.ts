/** Compiles what npm users get into `dist/package`, because Node strips no types below `node_modules`. */
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { $ } from 'zx/core'
import { readArguments } from './arguments.ts'
import { CHECKOUT, readVersion } from './facts.ts'
import { renderSeconds } from './progress.ts'
import { runScript, type Context } from './script.ts'

const OUT = 'dist/package'
/** Plain files that programs read beside their code. */
const STATIC = 'runtime/kit/web/static'

/** Types are checked by `pnpm check`; here they are only removed. */
const COMMON = {
  noEmit: false,
  noCheck: true,
  rootDir: '..',
  outDir: 'package',
  removeComments: false,
}
/** The programs, and the declarations of what can be imported. */
const PASSES = {
  programs: { include: ['../appliance', '../runtime'], options: {} },
  types: {
    include: ['../runtime/library'],
    options: { declaration: true, emitDeclarationOnly: true },
  },
} as const

const SCRIPT = {
  name: 'build:package',
  summary: [`Compiles what npm users get into ${OUT}.`],
  version: readVersion(CHECKOUT),
}

await runScript({
  name: SCRIPT.name,
  // npm packs right after, and prints what it packed.
  output: process.stderr,
  read: (argv) => readArguments(SCRIPT, argv),
  run: async (_given, { voice }) => {
    const start = performance.now()
    await compile(voice)
    const spent = renderSeconds((performance.now() - start) / 1000)
    voice.say.success(`${OUT} in ${spent}`)
    return 0
  },
})

async function compile({ say, line }: Context['voice']): Promise<void> {
  const run = $({ quiet: true, stdio: ['ignore', 2, 2] })
  await rm(OUT, { recursive: true, force: true })
  await mkdir(OUT, { recursive: true })
  for (const [name, { include, options }] of Object.entries(PASSES)) {
    const path = `dist/package-${name}.json`
    const config = {
      extends: '../tsconfig.json',
      compilerOptions: { ...COMMON, ...options },
      include,
    }
    await writeFile(path, JSON.stringify(config))
    try {
      line.start(() => ({ head: `Compiling ${name}`, rest: [] }))
      await run`node_modules/.bin/tsc --project ${path}`
      line.stop()
      say.success(`Compiled ${name}`)
    } finally {
      await rm(path)
    }
  }
  line.start(() => ({ head: 'Rendering the documentation', rest: [] }))
  const site = join(OUT, 'dist/docs')
  await run`${process.execPath} build/programs/docs-site.ts --docs docs --readme README.md --out ${site}`
  line.stop()
  await Promise.all([renameTypes(), mapRooms(), cp(STATIC, join(OUT, STATIC), { recursive: true })])
}

/** What programs ask of their package.json, and the names of rooms for what was compiled. */
async function mapRooms(): Promise<void> {
  const { name, version, repository, type, imports } = JSON.parse(
    await readFile('package.json', 'utf8'),
  )
  const shipped = Object.entries<string>(imports)
    .filter(([, target]) => /^\.\/(appliance|runtime)\//.test(target))
    .map(([pattern, target]) => [pattern, target.replace(/ts$/, 'js')])
  const map = { name, version, repository, type, imports: Object.fromEntries(shipped) }
  await writeFile(join(OUT, 'package.json'), `${JSON.stringify(map, null, 2)}\n`)
}

/** The compiler keeps `.ts` in the import paths of declarations. */
async function renameTypes(): Promise<void> {
  const names = await readdir(OUT, { recursive: true })
  for (const name of names.filter((one) => one.endsWith('.d.ts'))) {
    const text = await readFile(join(OUT, name), 'utf8')
    await writeFile(join(OUT, name), pointAtScripts(text))
  }
}

function pointAtScripts(text: string): string {
  return text.replaceAll(/(['"]\.{1,2}\/[\w./-]+)\.ts(['"])/g, '$1.js$2')
}
