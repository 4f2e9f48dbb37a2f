/** What the thread does that parses large inventories (`inventories.ts`): one message each way for each. */
import { parentPort } from 'node:worker_threads'
import { parseInventory } from '#engine/inventory/rules/inventory.ts'
import type { ParsedInventory } from './inventories.ts'

parentPort?.on('message', ({ buffer, byteOffset, byteLength }: Uint8Array) => {
  const parsed: ParsedInventory = parseInventory(Buffer.from(buffer, byteOffset, byteLength))
  parentPort?.postMessage(parsed, [])
})
