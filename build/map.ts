/** `pnpm docs:map`: writes docs/map.md from the first sentence of every file. */
import { writeFile } from 'node:fs/promises'
import { readArguments } from './arguments.ts'
import { CHECKOUT, readVersion } from './facts.ts'
import { readMapped } from './map/files.ts'
import { renderMap } from './map/overview.ts'
import { runScript } from './script.ts'

const PAGE = 'docs/map.md'
const SCRIPT = {
  name: 'docs:map',
  summary: [`Writes ${PAGE} from the first sentence of every file.`],
  version: readVersion(CHECKOUT),
}

await runScript({
  name: SCRIPT.name,
  read: (argv) => readArguments(SCRIPT, argv),
  run: async (_given, { voice }) => {
    const files = await readMapped('.')
    await writeFile(PAGE, renderMap(files))
    voice.say.success(`${PAGE} lists ${files.length} files`)
    return 0
  },
})
