/** Lets a FAT file system live by mtools, which need no mount. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import type { Deed, Event, Life } from './life.ts'
import { tryRun } from './volume.ts'

const KIB = 1024

const CHANGES: readonly Deed[] = ['overwrite', 'append']

/** `folder`: for what is to be copied. */
export async function liveFat(life: Life, node: string, folder: string): Promise<void> {
  const content = join(folder, 'content')
  const names: string[] = []

  async function write(number: number, kilobytes: number) {
    const name = `FILE${number}.BIN`
    await writeFile(content, makeNoise(Math.ceil(kilobytes * KIB) + (number % 777), number))
    const { exitCode } = await tryRun`mcopy -o -i ${node} ${content} ::/${name}`
    if (exitCode === 0 && !names.includes(name)) names.push(name)
  }

  async function remove(name: string) {
    await tryRun`mdel -i ${node} ::/${name}`
    names.splice(names.indexOf(name), 1)
  }

  async function removeSome(number: number) {
    for (const [index, name] of names.slice().entries()) {
      if ((index + number) % 4 === 0) await remove(name)
    }
  }

  async function rename(from: string, to: string) {
    await tryRun`mren -i ${node} ::/${from} ::/${to}`
    names.splice(names.indexOf(from), 1, to)
  }

  async function carryOut({ does, number }: Event) {
    const name = names[number % Math.max(1, names.length)]
    if (does === 'delete') return await removeSome(number)
    if (does === 'rename' && name !== undefined) return await rename(name, `R${number}.BIN`)
    if (does === 'write-many') return await writeMany(number)
    if (CHANGES.includes(does) && name !== undefined) await remove(name)
    await write(number, does === 'write-large' ? 1024 + (number % 8192) : number % 300)
  }

  async function writeMany(number: number) {
    for (let index = 0; index < 30; index += 1) await write(number + index, (index * 7) % 13)
  }

  for (let number = 0; number < life.files >> 1; number += 1) await write(number, number % 97)
  for (const event of life.events) await carryOut(event)
}
