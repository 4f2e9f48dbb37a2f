/** Replaces, places and removes files one after the other, and says each step once it is to stay. */
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { moveNewFile, removeName, replaceFile } from '#kit/host/folders.ts'

/** Long enough for several blocks, and another length each time. */
export const contentOf = (n: number): string => JSON.stringify(Array(4000 + n).fill(n))

/** From the `from`-th time on, a file that was renamed waits before its folder is synced. */
function holdRenames(from: number) {
  const rename = fs.rename.bind(fs)
  let count = 0
  fs.rename = async (...names) => {
    await rename(...names)
    count += 1
    if (count < from) return
    process.stdout.write('renamed\n')
    await new Promise(() => {})
  }
  syncBuiltinESMExports()
}

async function work(folder: string) {
  for (let n = 1; ; n += 1) {
    process.stdout.write(`begin ${n}\n`)
    await replaceFile(join(folder, 'state.json'), contentOf(n))
    process.stdout.write(`replaced ${n}\n`)
    await replaceFile(join(folder, `new-${n}`, 'below', 'a.json'), contentOf(n))
    const part = join(folder, `part-${n}`)
    await fs.writeFile(part, contentOf(n), { flush: true })
    await moveNewFile(part, join(folder, `image-${n}`))
    process.stdout.write(`placed ${n}\n`)
    await removeName(join(folder, `image-${n - 1}`))
    process.stdout.write(`removed ${n}\n`)
  }
}

if (import.meta.main) {
  // It waits for a rename that never returns.
  setInterval(() => {}, 1000)
  const [folder = '', from = ''] = process.argv.slice(2)
  if (from !== '') holdRenames(Number(from))
  await work(folder)
}
