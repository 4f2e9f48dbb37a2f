/** `pnpm docs:map`: writes docs/map.md from the first line of every file. */
import { writeFile } from 'node:fs/promises'
import { readMapped } from './map/files.ts'
import { renderMap } from './map/overview.ts'

await writeFile('docs/map.md', renderMap(await readMapped('.')))
