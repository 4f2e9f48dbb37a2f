/** Machine code that sets a UEFI program's command line (`LoadedImage->LoadOptions`) and starts it; iPXE runs that line as a script. */
import { roundUp, type CodeAddresses } from './pe.ts'

/** EFI_LOADED_IMAGE_PROTOCOL, 5B1B31A1-9562-11D2-8E3F-00A0C969723B. */
const PROTOCOL = Buffer.from('a1311b5b6295d2118e3f00a0c969723b', 'hex')

/** Offsets from the start of the section. */
interface Layout extends CodeAddresses {
  readonly guid: number
  readonly text: number
  readonly textBytes: number
}

type Render = (layout: Layout) => Buffer

/** Renders the section: code, the protocol's name, and the text as UTF-16 with a NUL. */
export function renderStub(
  processor: 'x86_64' | 'arm64',
  text: string,
  place: CodeAddresses,
): Buffer {
  const options = Buffer.from(`${text}\0`, 'utf16le')
  const layout = (guid: number) => ({
    ...place,
    guid,
    text: guid + PROTOCOL.length,
    textBytes: options.length,
  })
  const render = CODE[processor]
  const guid = roundUp(render(layout(0)).length, 16)
  const code = Buffer.alloc(guid)
  render(layout(guid)).copy(code)
  return Buffer.concat([code, PROTOCOL, options])
}

/** Arguments arrive in rcx (our handle) and rdx (the system table), and are restored before the jump. */
const renderX64: Render = ({ at, entry, guid, text, textBytes }) => {
  const parts: Buffer[] = []
  const put = (hex: string) => parts.push(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
  const here = () => parts.reduce((sum, { length }) => sum + length, 0)
  /** The 4-byte distance to `to` from the end of the instruction. */
  const distance = (to: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32LE(to - (here() + 4))
    parts.push(bytes)
  }
  put('55 4889e5 51 52 4883ec30') //  push rbp; mov rbp,rsp; push rcx; push rdx; sub rsp,48
  put('488b4260') //                  mov rax,[rdx+0x60]   BootServices
  put('488d15') //                    lea rdx,[guid]
  distance(guid)
  put('4c8d442428') //                lea r8,[rsp+40]
  put('ff9098000000') //              call [rax+0x98]      HandleProtocol
  put('4885c0 7517') //               test rax,rax; jnz to "add rsp"
  put('488b442428') //                mov rax,[rsp+40]
  put('488d0d') //                    lea rcx,[text]
  distance(text)
  put('48894838') //                  mov [rax+0x38],rcx   LoadOptions
  put('c74030') //                    mov dword [rax+0x30] LoadOptionsSize
  const size = Buffer.alloc(4)
  size.writeUInt32LE(textBytes)
  parts.push(size)
  put('4883c430 5a 59 5d e9') //      add rsp,48; pop rdx; pop rcx; pop rbp; jmp entry
  distance(entry - at)
  return Buffer.concat(parts)
}

/** Arguments arrive in x0 and x1, and are restored before the jump. */
const renderArm64: Render = ({ at, entry, guid, text, textBytes }) => {
  const words: number[] = [
    0xa9bd7bfd, // stp x29,x30,[sp,#-48]!
    0x910003fd, // mov x29,sp
    0xa90107e0, // stp x0,x1,[sp,#16]
    0xf9403028, // ldr x8,[x1,#0x60]    BootServices
    0xf9404d08, // ldr x8,[x8,#0x98]    HandleProtocol
  ]
  const adr = (register: number, to: number) => {
    const distance = to - words.length * 4
    return 0x10000000 | ((distance & 3) << 29) | (((distance >> 2) & 0x7ffff) << 5) | register
  }
  words.push(adr(1, guid))
  words.push(
    0x910083e2, // add x2,sp,#32
    0xd63f0100, // blr x8
    0xb50000e0, // cbnz x0, to "ldp x0,x1"
    0xf94013e9, // ldr x9,[sp,#32]
  )
  words.push(adr(10, text))
  words.push(
    0xf9001d2a, // str x10,[x9,#0x38]   LoadOptions
    0x52800000 | ((textBytes & 0xffff) << 5) | 11, // movz w11
    0x72a00000 | ((textBytes >> 16) << 5) | 11, // movk w11, lsl 16
    0xb900312b, // str w11,[x9,#0x30]   LoadOptionsSize
    0xa94107e0, // ldp x0,x1,[sp,#16]
    0xa8c37bfd, // ldp x29,x30,[sp],#48
  )
  const away = entry - (at + words.length * 4)
  words.push(0x14000000 | ((away >> 2) & 0x3ffffff)) // b entry
  const code = Buffer.alloc(words.length * 4)
  for (const [index, word] of words.entries()) code.writeUInt32LE(word >>> 0, index * 4)
  return code
}

const CODE = { x86_64: renderX64, arm64: renderArm64 } as const
