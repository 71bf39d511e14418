/* Trestle: streams and memory of CUDA devices. A header of its own: most programs have no devices. No header of CUDA is
 * needed here. docs/cuda.md has the whole picture.
 *
 * A communicator has a device if trestleConfig_t.device, TRESTLE_DEVICE or CommInitAll's devlist says so. Creating it
 * opens the device: the driver is loaded, and the device's primary context is used, which is the one of the CUDA
 * runtime. If this build has no CUDA, or there is no driver or no such device, that is trestleInvalidUsage or
 * trestleInvalidArgument, with a sentence that says which. The other ranks are told (trestleRemoteError).
 *
 * Memory, for a communicator with a device. Each call looks once at what kind of memory its buffers are.
 * - Memory of the device makes the call one on device memory. Memory of another device is trestleInvalidArgument.
 * - Pinned memory (cudaMallocHost, cudaHostRegister) and managed memory count as host memory, unless the call's other
 *   buffer is memory of the device.
 * - Ordinary memory is host memory. A call with one buffer of the device and one of ordinary memory is
 *   trestleInvalidArgument.
 * - A buffer that is longer than its allocation on the device, and memory that is not there (it was freed), is
 *   trestleInvalidArgument.
 * - All ranks that have data in a call must agree: device memory on all, or host memory on all. If they do not, the
 *   call fails as calls that differ do, and the sentence names both. A rank that sends and receives nothing goes with
 *   either, whatever it passes.
 * - Ranks of one process read each other's buffers where they lie, if they use one device, or if their devices reach each
 *   other, which is tried when a communicator is made (trestleConfig_t.peerAccess). Buffers that another device may not
 *   read, such as memory of pools, are copied out first. A call ends, also with a failure, when no device reads its buffers
 *   any more. Ranks of other processes of the host read 64 MiB of memory of a rank's device, which the library allocates
 *   with the communicator and keeps for later ones; they never read buffers of callers. Peer access is enabled for the
 *   program's own contexts and stays so: cudaDeviceEnablePeerAccess then says that it is enabled already, and the program
 *   must not disable it while communicators of these devices live.
 * - Between devices that NVLinks join, and elsewhere if trestleConfig_t.hostPath says so, the end of long messages goes
 *   through pinned host memory at the same time. It is staging between ranks of a process. Ranks that have such paths to
 *   other processes pin 32 MiB of shared memory for each communicator, which stays for later ones, and open as much of
 *   each of these ranks.
 * - The scalar of trestleRedOpCreatePreMulSum is read by the host: memory of a device is trestleInvalidArgument.
 * - What the library itself needs on the device is allocated by the thread that makes the call, before the call is
 *   queued: nothing is allocated while calls run. The driver may let that thread wait until earlier calls on the device
 *   have ended, those of other ranks of the process too. Calls of one group are prepared before any of them is queued,
 *   and a persistent request allocates at Init and never at Start, unless a group starts several on one stream. If there
 *   is no memory, the call is trestleSystemError on all ranks, and the communicator has failed.
 * - Schedulers of gradients (gradient.h) and compressed all-reduces (compress.h) work on host memory only, also on
 *   communicators with a device: memory of a device is trestleInvalidArgument there.
 * A communicator without a device never asks what a pointer is. All its buffers must be memory that the host can use;
 * memory of a device ends the process there, as any address does that the host cannot read. */
#ifndef TRESTLE_CUDA_H_
#define TRESTLE_CUDA_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Small collectives on device memory (trestleConfig_t.deviceExpressBytes), where the devices of all ranks of the
 * communicator write to each other, ranks of different processes have different devices
 * (TRESTLE_DEVICE_EXPRESS_PROCESSES), and their streams can wait for words: each rank launches one kernel, which waits for
 * those of the other ranks. It is launched on the caller's CUDA stream, when the call is made, unless the call is in a
 * group or other work is queued before it on the Trestle stream.
 * - Such calls of one communicator run in the order in which they are made, also on different streams. So what one of
 *   them waits for must not wait for a later one. An example that never ends: rank 0 makes recv and call 1 on stream A,
 *   and call 2 on stream B; rank 1 makes call 1, call 2, and the send behind it on one stream. The same holds for NCCL.
 * - A waiting kernel occupies up to 16 blocks of 288 threads. Ranks that share a device need streams that the device
 *   runs beside each other: with more streams than CUDA_DEVICE_MAX_CONNECTIONS, one rank's kernel may stand behind
 *   another one's, which waits for it. Then set deviceExpressBytes to 0.
 * - A CUDA stream takes about a thousand such calls ahead. Then the caller waits for room, as in any launch. Of calls
 *   that are no such kernels it takes 200. */

/* ---- Streams of CUDA --------------------------------------------------------------------------------------------- */

/* Makes a stream whose calls are ordered on a CUDA stream. cudaStream is a cudaStream_t or CUstream; it stays the
 * caller's, and must not be destroyed before the Trestle stream. The calling thread needs a current device only for a
 * default stream.
 *
 * A call on it, or a group's calls on it together, begin when the CUDA stream has done everything that was submitted to
 * it before the call (or GroupEnd). What is submitted to the CUDA stream after that waits for them. The host waits for
 * neither: the call returns as on any stream. It may wait for room in the CUDA stream, as a kernel's launch does. Calls
 * without data (a count of 0) do nothing.
 *
 * - A failure, an abort, or a deadline that passes lets the CUDA stream go on, and what was submitted after the call
 *   then runs although the call's result is missing. The next call, StreamQuery or StreamSynchronize returns the
 *   failure, as for other streams.
 * - If the CUDA stream fails, the calls on it fail with the driver's error.
 * - StreamSynchronize and StreamQuery are about the calls on the Trestle stream, and so about what was submitted to the
 *   CUDA stream before them; not about what was submitted after the last call.
 * - StreamDestroy waits for the calls, as for other streams. The CUDA stream may go on to hold work.
 * - EventRecord: the event is complete when everything is done that was submitted to the CUDA stream before it, calls
 *   included. StreamWaitEvent: calls on the Trestle stream and what is submitted to the CUDA stream later both wait.
 * - A communicator without a device takes the stream too. One with a device takes only streams of its own device
 *   (else trestleInvalidArgument). Communicators of different devices may be in one group, each with its own streams.
 * - Ranks of one process on the same device need a CUDA stream each: on one stream the call of one rank would wait for
 *   the end of the other's, which waits for it. Calls of one group on one Trestle stream do not wait for each other.
 * - NULL is the legacy default stream of the thread's current device. While it is held, all streams of the device
 *   wait, except those made with cudaStreamNonBlocking. cudaStreamPerThread is the default stream of this thread: only
 *   this thread may then use the Trestle stream; calls of others are trestleInvalidUsage. A thread without a current
 *   device can wrap neither (trestleInvalidUsage): call cudaSetDevice first.
 * - While the CUDA stream is being captured into a graph, calls on it are captured too: they run at each launch of the
 *   graph, on the data that the buffers have then. See below.
 * - While calls are under way, functions of CUDA that wait for the whole device (cudaFree, cudaDeviceSynchronize) wait
 *   for them too. A thread that other ranks of the process need for their calls must not be in one of these then.
 *   Creating a communicator with a device is such a function, and so is destroying one.
 *
 * Graphs. Collectives, sends and receives, alone or in a group, may be called on a Trestle stream whose CUDA stream is
 * being captured (cudaStreamBeginCapture). They are checked and planned, and get the memory that they need; no data
 * moves. Each launch of the graph runs them again.
 * - All ranks capture the same calls of a communicator in the same order, and launch each captured call equally often. A
 *   capture counts even if its graph is never launched. A captured call meets captured calls only.
 *   Launches of different graphs, and calls that are not captured, may come in any order on each rank, as long as the
 *   devices do not wait for each other in a circle. So calls that need each other should not be on parallel branches of
 *   a graph, which CUDA may run one after the other, but in one group on one stream.
 * - Buffers must stay allocated as long as the graph is launched. So must scalars with trestleScalarDevice, and what
 *   user-defined functions need: each launch reads them and calls these, also after RedOpDestroy.
 * - Launches of one capture must not overlap, as those of two instances of one graph might: the communicator then
 *   fails with trestleInvalidUsage. Launches of one instance never do.
 * - Failures are those of the communicator (trestleCommGetAsyncError). A launch whose communicator has failed or ended
 *   goes on without its calls; the log says so once for each capture. So synchronize the CUDA stream before CommFinalize or CommDestroy,
 *   which know nothing of launches to which the device has not come. The same holds for the functions that synchronize
 *   or query a communicator or a Trestle stream.
 * - The calls' memory is free for other calls of the communicator when the graph and what was instantiated from it has
 *   been destroyed. Captured calls on one stream follow each other, and share it.
 * - With TRESTLE_PROGRESS_THREAD=0 a launch goes on only while a thread of the program waits in the library.
 * - CUDA allows no host functions in bodies of conditional nodes, and so none of these calls.
 * - trestleInvalidUsage, and nothing is captured: EventRecord, and StreamWaitEvent for an event that was recorded, on
 *   such a stream (CUDA's own events can be captured), requests, a group that also makes, splits or finalizes communicators, a driver whose streams
 *   cannot wait for words in memory. After another error of a captured call, end the capture and drop the graph.
 *
 * trestleInvalidUsage: this build has no CUDA, or there is no driver. trestleInvalidArgument: the stream belongs to a
 * context that is not a device's primary one. cudaStream must be a living stream: CUDA does not check it. */
TRESTLE_API trestleResult_t trestleStreamWrapCuda(trestleStream_t* stream, void* cudaStream);

/* ---- Devices of communicators ------------------------------------------------------------------------------------ */

/* Writes the communicator's device, or -1 if it has none. */
TRESTLE_API trestleResult_t trestleCommDevice(trestleComm_t comm, int* device);
/* Writes what TRESTLE_DEVICE says, in the environment or in a configuration file: a device, or -1 for none. Without it,
 * TRESTLE_CONFIG_UNDEF_INT. For bindings that have a device of their own to propose, and let the variable decide. */
TRESTLE_API trestleResult_t trestleConfiguredDevice(int* device);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_CUDA_H_ */
