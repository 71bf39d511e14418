// Annotations of locks for Clang's thread-safety analysis (-Wthread-safety, in every build with Clang): which lock
// guards a member, which lock a function needs. Empty for other compilers. Used in declarations only.
//
// They are on Mutex and MutexLock (base/mutex.h), because libstdc++'s std::mutex has none.
#pragma once

#if defined(__clang__)
#define TRESTLE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define TRESTLE_THREAD_ANNOTATION(x)
#endif

// A type that can be held.
#define TRESTLE_CAPABILITY(name) TRESTLE_THREAD_ANNOTATION(capability(name))
// A type that holds from its construction to its destruction.
#define TRESTLE_SCOPED_CAPABILITY TRESTLE_THREAD_ANNOTATION(scoped_lockable)
// A member that is read and written only under this lock; or what a pointer points to.
#define TRESTLE_GUARDED_BY(lock) TRESTLE_THREAD_ANNOTATION(guarded_by(lock))
#define TRESTLE_PT_GUARDED_BY(lock) TRESTLE_THREAD_ANNOTATION(pt_guarded_by(lock))
// A function whose caller must hold the locks, or must not hold them because it takes them itself.
#define TRESTLE_REQUIRES(...) TRESTLE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define TRESTLE_EXCLUDES(...) TRESTLE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// A function that takes or releases a lock; without an argument: the object itself.
#define TRESTLE_ACQUIRE(...) TRESTLE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TRESTLE_RELEASE(...) TRESTLE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define TRESTLE_TRY_ACQUIRE(...) TRESTLE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
// A function whose locking the analysis cannot follow. The comment beside it says why it is right.
#define TRESTLE_NO_THREAD_SAFETY_ANALYSIS TRESTLE_THREAD_ANNOTATION(no_thread_safety_analysis)
// Of a lock: a thread that takes both locks takes this one first.
#define TRESTLE_ACQUIRED_BEFORE(lock) TRESTLE_THREAD_ANNOTATION(acquired_before(lock))
