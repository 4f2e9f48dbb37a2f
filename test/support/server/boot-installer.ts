/** Started as a program by a test that kills it: installs sets without end, each file of a set with the same text. */
import { writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { createBootFiles } from '#fleet/boot/boot-files.ts'
import { partName } from './boot-folder.ts'

const [dir = ''] = process.argv.slice(2)
const files = await createBootFiles({ dir, now: () => new Date() })
const FIRST = process.pid * 1000
for (let n = FIRST; ; n += 1) {
  // Now and then the same version again, with other bytes.
  const version = `1.${n % 3}.0`
  const staged = await files.stage()
  for (const part of TRIO) writeFileSync(join(staged, partName(version, part)), String(n))
  await files.install(staged, { x86_64: version }, 1)
  writeSync(1, `installed ${n}\n`)
}
